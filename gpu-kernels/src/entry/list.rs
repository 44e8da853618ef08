//! The list of tiles, each once.

/// The list of kernels. [`instantiate_entries!`](crate::instantiate_entries) makes kernels of its tiles, in
/// every type and layout. `$instantiate` is a macro that takes `$arguments`, one token tree, and then
/// codegen units with their kernels, as `(the parts of the name): type;`. A unit may come again.
#[doc(hidden)]
#[macro_export]
macro_rules! for_each_entry {
    ($instantiate:path, $arguments:tt) => {
        $crate::instantiate_entries! {
            tiles of $instantiate, $arguments;
            // M N K
            tiled {
                128 128 16;
                64 64 16;
            }
            // M N K of the CTA; M N of a warp; main loop, with its stages
            tensor_core {
                128 256 64, 64 64, Multistage<3>;
                128 128 64, 64 64, Multistage<3>;
                64 64 64, 32 32, Multistage<4>;
            }
            tensor_core_tf32 {
                128 256 32, 64 64, Multistage<3>;
                128 128 32, 64 64, Multistage<3>;
                64 64 32, 32 32, Multistage<4>;
            }
            tensor_core_f16x3 {
                128 128 32, 64 32, MultistageParts<4>;
                64 64 32, 32 32, MultistageParts<4>;
            }
            // M N K of the CTA; M N of a warp; main loop, with the CTAs of an SM
            tensor_core_sm75 {
                128 128 32, 64 64, Pipelined<2>;
                64 64 32, 32 32, Pipelined<3>;
            }
            // M N K, and the columns of a consumer where consumers divide those; stages, kernel
            // schedule; whether it takes every form; suffix; of clusters, their shapes (down x across)
            hopper {
                128 256 64, 3, Cooperative, true, "";
                128 256 64, 4, Cooperative, false, "_stages4";
                128 256 64, 3, StreamK, false, "_streamk";
                256 192 64, 4, Cooperative, false, "";
                256 192 64, 4, Clusters, false, "_cluster" of "1x2" "2x1";
                256 128 64, 4, Clusters, false, "_cluster" of "2x1" "1x4";
                128 256 64, 4, Clusters, false, "_cluster" of "1x2" "2x1" "1x4";
                192 192 64, 4, Clusters, false, "_cluster" of "1x2" "2x1";
                192 128 64, 4, Cooperative, false, "";
                192 128 64, 4, Clusters, false, "_cluster" of "1x2" "2x1";
                128 192 64, 4, Cooperative, false, "";
                128 192 64, 4, Clusters, false, "_cluster" of "1x2" "2x1" "4x1" "2x4" "4x2";
                128 192 64, 4, PingPong, false, "_pingpong";
                128 128 64, 6, Cooperative, true, "";
                128 128 64, 5, PingPong, true, "_pingpong";
                128 128 64, 6, StreamK, true, "_streamk";
                128 128 64, 6, Clusters, false, "_cluster" of "1x2" "2x1" "1x4" "4x1" "2x4" "4x2";
                128 64 64, 8, Cooperative, true, "";
                64 128 64, 8, Cooperative, true, "";
                128 64 64, 8, Clusters, false, "_cluster" of "1x2" "2x1" "1x4" "4x1";
                64 128 64, 8, Clusters, false, "_cluster" of "2x1" "1x4" "4x1" "2x4" "4x2";
                128 64 64, 8, StreamK, true, "_streamk";
                64 64 128, 6, Cooperative, true, "";
                64 64 64, 10, PingPong, true, "_pingpong";
                64 16 64, 8, Cooperative, false, "";
                64 64 64, 12, Clusters, false, "_cluster" of "1x2" "2x1" "1x4" "4x1" "2x4" "4x2";
                64 64 64, 8, SplitK<2>, true, "_split2";
                64 64 64, 8, SplitK<4>, true, "_split4";
                64 64 64, 8, SplitK<8>, true, "_split8";
                128 64 64, 6, SplitK<4>, false, "_split4";
                128 128 64, 4, SplitK<2>, false, "_split2";
                64 32 64, 12, SplitK<8>, false, "_split8";
                192 128 64, 5, SplitKParallel, false, "_splitk_cluster" of "1x2" "1x4";
                128 192 64, 5, SplitKParallel, false, "_splitk_cluster" of "2x1";
                128 128 64, 7, SplitKParallel, false, "_splitk_cluster" of "1x2" "2x1" "2x2";
                128 64 64, 9, SplitKParallel, false, "_splitk_cluster" of "1x4" "1x2" "2x1" "4x2";
                64 64 64, 6, Unaligned, true, "_unaligned";
                64 64 64, 6, UnalignedSplitK<4>, false, "_unaligned_split4";
                64 64 64, 6, UnalignedSplitK<8>, false, "_unaligned_split8";
                64 128 64, 5, Unaligned, false, "_unaligned";
                64 128 64, 5, UnalignedSplitK<2>, false, "_unaligned_split2";
                64 64 64, 6, UnalignedSplitKParallel, false, "_unaligned_splitk";
                64 128 64, 5, UnalignedSplitKParallel, false, "_unaligned_splitk";
            }
            // B along K: tiles with a width between multiples of 64, and as many stages as fit.
            hopper_bk {
                128 160 64, 5, Cooperative, false, "";
                128 160 64, 5, Clusters, false, "_cluster" of "1x2" "2x1" "4x1";
                128 160 64, 5, StreamK, false, "_streamk";
                128 144 64, 5, Cooperative, false, "";
                128 112 64, 6, Cooperative, false, "";
                128 96 64, 6, Cooperative, false, "";
                128 80 64, 7, Cooperative, false, "";
                64 96 64, 10, Cooperative, false, "";
                64 96 64, 10, Clusters, false, "_cluster" of "4x1" "2x4";
                128 160 64, 6, SplitKParallel, false, "_splitk_cluster" of "2x1";
                64 96 64, 11, SplitKParallel, false, "_splitk_cluster" of "4x1" "2x4";
                64 80 64, 12, SplitKParallel, false, "_splitk_cluster" of "4x1";
                64 192 64, 6, Cooperative, false, "";
                256 112 64, 4, Clusters, false, "_cluster" of "1x2";
                128 80 64, 6, SplitK<4>, false, "_split4";
                128 176 64, 5, Clusters, false, "_cluster" of "1x2" "2x1" "1x4" "4x1" "2x4";
                128 208 64, 4, Clusters, false, "_cluster" of "1x2" "2x1" "4x1";
                192 112 64, 5, Clusters, false, "_cluster" of "1x2" "1x4" "2x4";
                192 160 64, 4, Clusters, false, "_cluster" of "1x2" "2x1" "4x1" "4x2";
                128 96 64, 7, Clusters, false, "_cluster" of "1x2" "1x4" "2x4" "4x2";
                128 80 64, 7, Clusters, false, "_cluster" of "1x4" "4x1" "2x4" "4x2";
                64 112 64, 9, Clusters, false, "_cluster" of "4x1" "4x2";
                64 32 64, 16, PingPong, false, "_pingpong";
                128 104 64, 7, Clusters, false, "_cluster" of "1x4" "4x1" "4x2";
                128 136 64, 5, Clusters, false, "_cluster" of "1x2" "2x1" "1x4" "4x1";
                192 88 64, 5, Clusters, false, "_cluster" of "1x2" "1x4";
                192 208 64 by 104, 4, Clusters, false, "_cluster" of "1x2" "2x1";
                192 224 64 by 112, 4, Clusters, false, "_cluster" of "1x2" "2x1";
                192 240 64 by 120, 4, Clusters, false, "_cluster" of "1x2" "2x1";
                192 256 64 by 128, 4, Clusters, false, "_cluster" of "1x2" "2x1";
            }
            // B along N, which is loaded in boxes of 64 columns: fewer stages fit, and a width
            // between multiples of 64 loads as much as the next multiple. It gains where its tiles
            // end in a whole wave of clusters.
            hopper_bn {
                128 160 64, 4, Clusters, false, "_cluster" of "1x2" "2x1" "1x4" "4x1";
                128 160 64, 5, SplitKParallel, false, "_splitk_cluster" of "2x1";
                64 112 64, 8, Clusters, false, "_cluster" of "4x1";
                256 160 64, 4, Clusters, false, "_cluster" of "1x2" "2x1" "4x1";
                192 256 64 by 128, 4, Clusters, false, "_cluster" of "1x2" "2x1";
                128 224 64, 4, Clusters, false, "_cluster" of "1x2" "2x1" "4x1";
                192 96 64, 5, Clusters, false, "_cluster" of "1x2" "1x4" "4x1";
                128 96 64, 6, Clusters, false, "_cluster" of "2x1" "1x4" "4x1" "2x4" "4x2";
                64 96 64, 9, SplitKParallel, false, "_splitk_cluster" of "4x1";
            }
            // B along K, and C along M, for plain products: few rows of a row-major C, which are
            // columns here, make tiles of as many columns.
            hopper_cm {
                128 160 64, 5, Clusters, false, "_cluster" of "1x2" "2x1" "4x1" "2x4";
                128 80 64, 7, Cooperative, false, "";
                64 48 64, 14, Cooperative, false, "";
                64 32 64, 16, Cooperative, false, "";
                256 160 64, 4, Clusters, false, "_cluster" of "1x2" "4x2";
                64 96 64, 10, Clusters, false, "_cluster" of "2x1" "1x4" "4x1" "2x4";
                64 176 64, 7, Clusters, false, "_cluster" of "4x1" "2x4";
                192 160 64, 4, Clusters, false, "_cluster" of "1x2" "2x1" "4x2";
                128 224 64, 4, Clusters, false, "_cluster" of "1x2" "2x1" "4x1";
                128 144 64, 5, Clusters, false, "_cluster" of "1x2" "2x1" "1x4" "4x1";
                128 96 64, 6, Clusters, false, "_cluster" of "1x2" "2x1" "1x4" "4x1" "2x4";
                192 176 64, 4, Clusters, false, "_cluster" of "1x2" "2x1";
                64 72 64, 12, Clusters, false, "_cluster" of "2x4" "4x2";
                128 104 64, 7, Clusters, false, "_cluster" of "1x2" "2x4" "4x2";
                128 136 64, 5, Clusters, false, "_cluster" of "1x2" "2x4" "4x1";
                128 168 64, 5, Clusters, false, "_cluster" of "2x1" "2x4" "4x1";
                128 200 64, 4, Clusters, false, "_cluster" of "1x2" "2x1";
                64 104 64, 9, Clusters, false, "_cluster" of "4x1" "2x4" "4x2";
                192 208 64 by 104, 4, Clusters, false, "_cluster" of "1x2" "2x1";
                192 224 64 by 112, 4, Clusters, false, "_cluster" of "1x2" "2x1";
                192 240 64 by 120, 4, Clusters, false, "_cluster" of "1x2" "2x1";
            }
            // The same with B along N.
            hopper_cm_bn {
                256 160 64, 4, Clusters, false, "_cluster" of "1x2" "4x2";
                64 96 64, 8, Clusters, false, "_cluster" of "2x1" "1x4" "4x1" "2x4";
                64 176 64, 6, Clusters, false, "_cluster" of "4x1" "2x4";
                128 160 64, 4, Clusters, false, "_cluster" of "1x2" "2x1" "4x1" "2x4" "4x2";
                128 96 64, 6, Clusters, false, "_cluster" of "1x2" "1x4" "4x1";
                128 224 64, 4, Clusters, false, "_cluster" of "1x2" "2x1" "4x1";
                256 96 64, 4, Clusters, false, "_cluster" of "2x1" "4x1";
            }
            hopper_f16x3 {
                128 128 64, 6, Cooperative, true, "";
                128 128 64, 6, Clusters, true, "_cluster" of "2x1";
                64 128 64, 8, Cooperative, true, "";
                64 64 64, 8, Cooperative, true, "";
                64 64 64, 8, SplitK<2>, true, "_split2";
                64 64 64, 8, SplitK<4>, true, "_split4";
            }
            hopper_tf32 {
                128 256 32, 3, Cooperative, true, "";
                128 256 32, 4, Cooperative, false, "_stages4";
                128 256 32, 4, Clusters, false, "_cluster" of "2x1";
                128 256 32, 4, StreamK, false, "_streamk";
                128 192 32, 4, Cooperative, false, "";
                128 128 32, 6, Cooperative, true, "";
                128 128 32, 5, PingPong, true, "_pingpong";
                128 128 32, 6, StreamK, true, "_streamk";
                64 128 32, 8, Cooperative, true, "";
                128 64 32, 8, Cooperative, true, "";
                64 64 32, 8, Cooperative, true, "";
                64 64 64, 6, Cooperative, true, "";
                64 64 32, 8, SplitK<2>, true, "_split2";
                64 64 32, 8, SplitK<4>, true, "_split4";
                64 64 32, 8, SplitK<8>, true, "_split8";
            }
            // A along M, which goes through registers: one m64 tile a consumer, no clusters.
            hopper_tf32_am {
                128 256 32, 4, Cooperative, false, "";
                128 192 32, 4, Cooperative, false, "";
                128 128 32, 6, Cooperative, true, "";
                128 64 32, 8, Cooperative, true, "";
                64 64 32, 8, Cooperative, true, "";
            }
            // The same with C along M, for plain products.
            hopper_tf32_am_cm {
                128 256 32, 4, Cooperative, false, "";
                128 192 32, 4, Cooperative, false, "";
                128 128 32, 6, Cooperative, false, "";
                128 64 32, 8, Cooperative, false, "";
                64 64 32, 8, Cooperative, false, "";
            }
            // M N of every tile under stream-K, and of every cluster, or CTA, that leaves its sums
            reduce {
                512 128;
                512 80;
                256 256;
                256 192;
                256 160;
                256 128;
                256 96;
                256 80;
                256 64;
                192 512;
                192 256;
                128 384;
                128 256;
                128 160;
                128 128;
                128 64;
                64 128;
                64 64;
            }
        }
    };
}
