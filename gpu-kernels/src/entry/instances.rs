//! The types, layouts and names in which the tiles of the list become kernels.

/// Calls `$instantiate!` with the kernels of the tiles that [`for_each_entry!`](crate::for_each_entry) gives.
#[doc(hidden)]
#[macro_export]
macro_rules! instantiate_entries {
    // Instantiates every tile in every type and layout.
    (
        tiles of $instantiate:path, $arguments:tt;
        tiled { $($tiled:tt)* }
        tensor_core { $($tensor_core:tt)* }
        tensor_core_tf32 { $($tensor_core_tf32:tt)* }
        tensor_core_f16x3 { $($tensor_core_f16x3:tt)* }
        tensor_core_sm75 { $($tensor_core_sm75:tt)* }
        hopper { $($hopper:tt)* }
        hopper_bk { $($hopper_bk:tt)* }
        hopper_bn { $($hopper_bn:tt)* }
        hopper_cm { $($hopper_cm:tt)* }
        hopper_cm_bn { $($hopper_cm_bn:tt)* }
        hopper_f16x3 { $($hopper_f16x3:tt)* }
        hopper_tf32 { $($hopper_tf32:tt)* }
        hopper_tf32_am { $($hopper_tf32_am:tt)* }
        hopper_tf32_am_cm { $($hopper_tf32_am_cm:tt)* }
        reduce { $($reduce:tt)* }
    ) => {
        $crate::instantiate_entries! {
            types of $instantiate, $arguments;
            tiled {
                ("tiled_f32_" F32) { $($tiled)* }
                ("tiled_f16_" F16) { $($tiled)* }
                ("tiled_bf16_" Bf16) { $($tiled)* }
            }
            tensor_core {
                ("tensor_core_f16_" F16) { $($tensor_core)* }
                ("tensor_core_bf16_" Bf16) { $($tensor_core)* }
                ("tensor_core_tf32_" Tf32) { $($tensor_core_tf32)* }
            }
            tensor_core_f16x3 {
                ("tensor_core_f16x3_" F16x3) { $($tensor_core_f16x3)* }
            }
            tensor_core_sm75 {
                ("tensor_core_f16_" F16) { $($tensor_core_sm75)* }
            }
            hopper {
                "sm_90a_f32" ("hopper_f16x3_ak_bk_" F16x3, AlongK, AlongK) {
                    $($hopper_f16x3)*
                }
                "sm_90a_f32" ("hopper_tf32_ak_bk_" Tf32, AlongK, AlongK) {
                    $($hopper_tf32)*
                }
                "sm_90a_f32" ("hopper_tf32_am_bk_" Tf32, AlongMn, AlongK) {
                    $($hopper_tf32_am)*
                }
                "sm_90a_f16_ak" ("hopper_f16_ak_bk_" F16, AlongK, AlongK) {
                    $($hopper)* $($hopper_bk)*
                }
                "sm_90a_f16_ak" ("hopper_f16_ak_bn_" F16, AlongK, AlongMn) {
                    $($hopper)* $($hopper_bn)*
                }
                "sm_90a_f16_am" ("hopper_f16_am_bk_" F16, AlongMn, AlongK) {
                    $($hopper)* $($hopper_bk)*
                }
                "sm_90a_f16_am" ("hopper_f16_am_bn_" F16, AlongMn, AlongMn) {
                    $($hopper)* $($hopper_bn)*
                }
                "sm_90a_bf16_ak" ("hopper_bf16_ak_bk_" Bf16, AlongK, AlongK) {
                    $($hopper)* $($hopper_bk)*
                }
                "sm_90a_bf16_ak" ("hopper_bf16_ak_bn_" Bf16, AlongK, AlongMn) {
                    $($hopper)* $($hopper_bn)*
                }
                "sm_90a_bf16_am" ("hopper_bf16_am_bk_" Bf16, AlongMn, AlongK) {
                    $($hopper)* $($hopper_bk)*
                }
                "sm_90a_bf16_am" ("hopper_bf16_am_bn_" Bf16, AlongMn, AlongMn) {
                    $($hopper)* $($hopper_bn)*
                }
            }
            hopper_cm {
                "sm_90a_f32" ("hopper_tf32_am_bk_cm_" Tf32, AlongMn, AlongK) {
                    $($hopper_tf32_am_cm)*
                }
                "sm_90a_f16_ak" ("hopper_f16_ak_bk_cm_" F16, AlongK, AlongK) {
                    $($hopper_cm)*
                }
                "sm_90a_f16_am" ("hopper_f16_am_bk_cm_" F16, AlongMn, AlongK) {
                    $($hopper_cm)*
                }
                "sm_90a_bf16_ak" ("hopper_bf16_ak_bk_cm_" Bf16, AlongK, AlongK) {
                    $($hopper_cm)*
                }
                "sm_90a_bf16_am" ("hopper_bf16_am_bk_cm_" Bf16, AlongMn, AlongK) {
                    $($hopper_cm)*
                }
                "sm_90a_f16_ak" ("hopper_f16_ak_bn_cm_" F16, AlongK, AlongMn) {
                    $($hopper_cm_bn)*
                }
                "sm_90a_f16_am" ("hopper_f16_am_bn_cm_" F16, AlongMn, AlongMn) {
                    $($hopper_cm_bn)*
                }
                "sm_90a_bf16_ak" ("hopper_bf16_ak_bn_cm_" Bf16, AlongK, AlongMn) {
                    $($hopper_cm_bn)*
                }
                "sm_90a_bf16_am" ("hopper_bf16_am_bn_cm_" Bf16, AlongMn, AlongMn) {
                    $($hopper_cm_bn)*
                }
            }
            reduce { $($reduce)* }
        }
    };
    (
        types of $instantiate:path, $arguments:tt;
        tiled {
            $(($t_name:literal $t_type:ty) { $($tm:literal $tn:literal $tk:literal;)* })*
        }
        tensor_core {
            $(($c_name:literal $ct:ty) {
                $($cm:literal $cn:literal $ck:literal,
                  $wm:literal $wn:literal, $c_loop:ty;)*
            })*
        }
        tensor_core_f16x3 {
            $(($x_name:literal $xt:ty) {
                $($xm:literal $xn:literal $xk:literal,
                  $xwm:literal $xwn:literal, $x_loop:ty;)*
            })*
        }
        tensor_core_sm75 {
            $(($p_name:literal $pt:ty) {
                $($pm:literal $pn:literal $pk:literal,
                  $pwm:literal $pwn:literal, $p_loop:ty;)*
            })*
        }
        hopper {
            $($h_unit:literal ($h_name:literal $ht:ty, $ha:ty, $hb:ty) {
                $($hm:literal $hn:literal $hk:literal $(by $h_columns:literal)?,
                  $h_stages:literal, $schedule:ty, $fused:literal,
                  $suffix:literal $(of $($shape:literal)+)?;)*
            })*
        }
        hopper_cm {
            $($m_unit:literal ($m_name:literal $mt:ty, $ma:ty, $mb:ty) {
                $($mm:literal $mn:literal $mk:literal $(by $m_columns:literal)?,
                  $m_stages:literal, $m_schedule:ty, $m_fused:literal,
                  $m_suffix:literal $(of $($m_shape:literal)+)?;)*
            })*
        }
        reduce { $($rm:literal $rn:literal;)* }
    ) => {
        $instantiate! {
            $arguments
            "sm_75" {
                ("pack_16"): Pack<F16>;
                ("pack_32"): Pack<F32>;
                ("split_f16x3"): Split<F16x3>;
                ("naive_f32"): Naive<F32>;
                ("naive_f16"): Naive<F16>;
                ("naive_bf16"): Naive<Bf16>;
                $($(
                    ($t_name, $tm, "x", $tn, "x", $tk): Tiled<$t_type, $tm, $tn, $tk>;
                )*)*
                $($(
                    ($p_name, "ak_bk_", $pm, "x", $pn, "x", $pk, "_sm75"):
                        TensorCore<$pt, AlongK, AlongK, $pm, $pn, $pk, $pwm, $pwn, $p_loop>;
                    ($p_name, "ak_bn_", $pm, "x", $pn, "x", $pk, "_sm75"):
                        TensorCore<$pt, AlongK, AlongMn, $pm, $pn, $pk, $pwm, $pwn, $p_loop>;
                    ($p_name, "am_bk_", $pm, "x", $pn, "x", $pk, "_sm75"):
                        TensorCore<$pt, AlongMn, AlongK, $pm, $pn, $pk, $pwm, $pwn, $p_loop>;
                    ($p_name, "am_bn_", $pm, "x", $pn, "x", $pk, "_sm75"):
                        TensorCore<$pt, AlongMn, AlongMn, $pm, $pn, $pk, $pwm, $pwn, $p_loop>;
                )*)*
            }
            "sm_80" {
                $($(
                    ($c_name, "ak_bk_", $cm, "x", $cn, "x", $ck):
                        TensorCore<$ct, AlongK, AlongK, $cm, $cn, $ck, $wm, $wn, $c_loop>;
                    ($c_name, "ak_bn_", $cm, "x", $cn, "x", $ck):
                        TensorCore<$ct, AlongK, AlongMn, $cm, $cn, $ck, $wm, $wn, $c_loop>;
                    ($c_name, "am_bk_", $cm, "x", $cn, "x", $ck):
                        TensorCore<$ct, AlongMn, AlongK, $cm, $cn, $ck, $wm, $wn, $c_loop>;
                    ($c_name, "am_bn_", $cm, "x", $cn, "x", $ck):
                        TensorCore<$ct, AlongMn, AlongMn, $cm, $cn, $ck, $wm, $wn, $c_loop>;
                )*)*
                $($(
                    ($x_name, "ak_bk_", $xm, "x", $xn, "x", $xk):
                        TensorCore<$xt, AlongK, AlongK, $xm, $xn, $xk, $xwm, $xwn, $x_loop>;
                )*)*
            }
            $($h_unit {
                $(
                    ($h_name, $hm, "x", $hn, "x", $hk, $suffix) $([$($shape)+])?:
                        Hopper<
                            $ht, $ha, $hb, $hm, $hn, $hk, $h_stages, $schedule, $fused
                            $(, false, $h_columns)?
                        >;
                )*
            })*
            $($m_unit {
                $(
                    ($m_name, $mm, "x", $mn, "x", $mk, $m_suffix) $([$($m_shape)+])?: Hopper<
                        $mt, $ma, $mb, $mm, $mn, $mk, $m_stages, $m_schedule, $m_fused, true
                        $(, $m_columns)?
                    >;
                )*
            })*
            "sm_90a_f32" {
                $(("reduce_", $rm, "x", $rn): Reduce<$rm, $rn>;)*
                ("placement_2"): Placement<2>;
                ("placement_4"): Placement<4>;
                ("placement_16"): Placement<16>;
            }
        }
    };
}
