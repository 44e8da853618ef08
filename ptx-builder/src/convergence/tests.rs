use super::*;

/// An entry point of CTAs of 256 threads along x, with `body`.
fn program(body: &str) -> String {
    format!(
        ".version 8.0\n.target sm_90a\n.address_size 64\n\
         .visible .entry one(\n\t.param .u64 one_param_0,\n\t.param .u32 one_param_1\n)\n\
         .maxntid 256, 1, 1\n{{\n\
         \t.reg .pred \t%p<20>;\n\t.reg .b32 \t%r<20>;\n\t.reg .b64 \t%rd<20>;\n\
         \tmov.u32 %r1, %tid.x;\n\tld.param.u32 \t%r2, [one_param_1];\n\
         {body}\tret;\n}}\n"
    )
}

/// The instructions that are found in divergent code.
fn divergent(body: &str) -> Vec<String> {
    let found = check(&program(body)).unwrap();
    found.into_iter().map(|found| found.instruction).collect()
}

/// That nothing is found, in each of these.
fn assert_convergent(bodies: &[&str]) {
    for body in bodies {
        assert_eq!(divergent(body), [""; 0], "{body}");
    }
}

/// That the one `bar.sync` is found, in each of these.
fn assert_divergent(bodies: &[&str]) {
    for body in bodies {
        assert_eq!(divergent(body), ["bar.sync 0"], "{body}");
    }
}

/// A barrier that those threads skip for which `condition` has set `%p1`.
fn skipped_where(condition: &str) -> String {
    format!("\t{condition}\n\t@%p1 bra \tL;\n\tbar.sync \t0;\nL:\n")
}

#[test]
fn the_kernel_that_hung_is_found() {
    let found = check(include_str!("fixtures/branches_joined.ptx")).unwrap();
    assert_eq!(found.len(), 4);
    for divergence in &found {
        assert_eq!(divergence.instruction, "wgmma.wait_group.sync.aligned 0");
        let branch = divergence.branch.as_ref().unwrap();
        assert_eq!(branch.instruction, "@%p172 bra $L__BB0_49");
    }
    assert_eq!(
        found[0].to_string(),
        "`wgmma.wait_group.sync.aligned 0` (line 64) stands between the divergent branch \
         `@%p172 bra $L__BB0_49` (line 63) and its join"
    );
}

#[test]
fn the_kernel_with_its_arrivals_predicated_passes() {
    let found = check(include_str!("fixtures/arrivals_predicated.ptx")).unwrap();
    assert_eq!(found, []);
}

#[test]
fn a_branch_on_the_lane_diverges() {
    for condition in [
        "setp.eq.b32 %p1, %r1, 0;",
        "setp.lt.u32 %p1, %r1, 100;",
        "setp.le.u32 %p1, %r1, 32;",
        "setp.lt.u32 %p1, %r1, %r2;",
        "and.b32 %r3, %r1, 31;\n\tsetp.eq.b32 %p1, %r3, 0;",
        "and.b32 %r3, %r1, 127;\n\tsetp.ne.b32 %p1, %r3, 0;",
        "shr.u32 %r3, %r1, 4;\n\tsetp.eq.b32 %p1, %r3, 0;",
        "add.s32 %r3, %r1, 16;\n\tsetp.lt.u32 %p1, %r3, 64;",
        "shl.b32 %r3, %r1, 4;\n\tor.b32 %r4, %r3, %r2;\n\tand.b32 %r5, %r4, 16;\n\t\
         setp.eq.b32 %p1, %r5, 0;",
        "mov.u32 %r3, %laneid;\n\tsetp.eq.b32 %p1, %r3, 0;",
        "mov.u32 %r3, %clock;\n\tsetp.eq.b32 %p1, %r3, 0;",
        "ld.global.u32 %r3, [%rd1];\n\tsetp.eq.b32 %p1, %r3, 0;",
        "ld.shared.u32 %r3, [%r2];\n\tsetp.eq.b32 %p1, %r3, 0;",
        "elect.sync _|%p1, -1;",
        "activemask.b32 %r3;\n\tsetp.eq.b32 %p1, %r3, -1;",
        "shfl.sync.bfly.b32 %r3, %r1, 1, 31, -1;\n\tsetp.eq.b32 %p1, %r3, 0;",
        "shfl.sync.idx.b32 %r3, %r1, %r1, 31, -1;\n\tsetp.eq.b32 %p1, %r3, 0;",
        // Segments of 16 lanes.
        "shfl.sync.idx.b32 %r3, %r1, 0, 4127, -1;\n\tsetp.eq.b32 %p1, %r3, 0;",
        "setp.eq.b32 %p2, %r2, 0;\n\tsetp.eq.b32 %p3, %r1, 0;\n\tor.pred %p1, %p2, %p3;",
        "setp.eq.b32 %p2, %r1, 0;\n\tnot.pred %p1, %p2;",
        "atom.global.add.u32 %r3, [%rd1], 1;\n\tsetp.eq.b32 %p1, %r3, 0;",
        "frobnicate.u32 %r3, %r2;\n\tsetp.eq.b32 %p1, %r3, 0;",
    ] {
        assert_divergent(&[&skipped_where(condition)]);
    }
}

#[test]
fn a_branch_on_what_a_warp_shares_does_not() {
    for condition in [
        "setp.eq.b32 %p1, %r2, 0;",
        "setp.lt.u32 %p1, %r1, 128;",
        "setp.gt.u32 %p1, %r1, 127;",
        "setp.ge.u32 %p1, %r1, 32;",
        "shr.u32 %r3, %r1, 5;\n\tsetp.eq.b32 %p1, %r3, 1;",
        "bfe.u32 %r3, %r1, 5, 2;\n\tsetp.eq.b32 %p1, %r3, 1;",
        "and.b32 %r3, %r1, 96;\n\tsetp.eq.b32 %p1, %r3, 0;",
        "add.s32 %r3, %r1, -128;\n\tsetp.lt.u32 %p1, %r3, 64;",
        "shl.b32 %r3, %r1, 2;\n\tsetp.lt.u32 %p1, %r3, 128;",
        "cvt.u64.u32 %rd1, %r1;\n\tshr.u64 %rd2, %rd1, 7;\n\tsetp.eq.b64 %p1, %rd2, 0;",
        "mov.u32 %r3, %ctaid.x;\n\tsetp.eq.b32 %p1, %r3, 0;",
        "mov.u32 %r3, %cluster_ctarank;\n\tsetp.eq.b32 %p1, %r3, 0;",
        "mov.u32 %r3, %tid.y;\n\tsetp.eq.b32 %p1, %r3, 0;",
        "shfl.sync.idx.b32 %r3, %r1, 0, 31, -1;\n\tsetp.eq.b32 %p1, %r3, 0;",
        "setp.eq.b32 %p2, %r1, 0;\n\tvote.sync.any.pred %p1, %p2, -1;",
        "mul.lo.s32 %r3, %r2, 3;\n\tsetp.eq.b32 %p2, %r3, 6;\n\tnot.pred %p1, %p2;",
        // What stands beside the index in one word.
        "shl.b32 %r3, %r1, 4;\n\tor.b32 %r4, %r3, %r2;\n\tand.b32 %r5, %r4, 15;\n\t\
         setp.eq.b32 %p1, %r5, 0;",
        // A choice that all lanes make.
        "selp.b32 %r3, %r2, 7, %p9;\n\tsetp.eq.b32 %p1, %r3, 7;",
    ] {
        assert_convergent(&[&skipped_where(condition)]);
    }
}

#[test]
fn threads_along_other_axes_make_the_index_along_x_no_lane() {
    let body = skipped_where("setp.lt.u32 %p1, %r1, 128;");
    let flat = program(&body).replace(".maxntid 256, 1, 1", ".maxntid 16, 16, 1");
    assert_eq!(check(&flat).unwrap().len(), 1);
    let unknown = program(&body).replace(".maxntid 256, 1, 1\n", "");
    assert_eq!(check(&unknown).unwrap().len(), 1);
}

#[test]
fn behind_the_join_lanes_are_together_again() {
    let lane_0 = "\tsetp.ne.b32 %p1, %r1, 0;\n";
    assert_convergent(&[
        &format!("{lane_0}\t@%p1 bra L;\n\tst.shared.u32 [%r2], 1;\nL:\n\tbar.sync 0;\n"),
        // Both arms, and arms within arms.
        &format!(
            "{lane_0}\t@%p1 bra L;\n\t@%p1 bra M;\n\tst.shared.u32 [%r2], 1;\nM:\n\t\
             bra.uni N;\nL:\n\tst.shared.u32 [%r2], 2;\nN:\n\tbar.sync 0;\n"
        ),
        // A lane that traps ends the grid.
        &format!("{lane_0}\t@%p1 bra L;\n\ttrap;\nL:\n\tbar.sync 0;\n"),
    ]);
    assert_divergent(&[
        // A lane that returns never comes.
        &format!("{lane_0}\t@%p1 bra L;\n\tret;\nL:\n\tbar.sync 0;\n"),
        &format!("{lane_0}\t@%p1 ret;\n\tbar.sync 0;\n"),
        // Nor does one that loops for ever.
        &format!("{lane_0}\t@%p1 bra L;\n\tbar.sync 0;\n\tret;\nL:\n\tbra.uni L;\n"),
    ]);
}

#[test]
fn a_value_chosen_by_a_divergent_branch_varies_behind_it() {
    // %r3 is 1 or 2, by a branch of the lane.
    assert_divergent(&[
        "\tsetp.ne.b32 %p1, %r1, 0;\n\tmov.b32 %r3, 1;\n\t@%p1 bra L;\n\t\
         mov.b32 %r3, 2;\nL:\n\tsetp.eq.b32 %p2, %r3, 1;\n\t@%p2 bra M;\n\tbar.sync 0;\nM:\n",
    ]);
    // By a branch that all lanes take alike; and written by a predicate.
    assert_convergent(&[
        "\tsetp.ne.b32 %p1, %r2, 0;\n\tmov.b32 %r3, 1;\n\t@%p1 bra L;\n\t\
         mov.b32 %r3, 2;\nL:\n\tsetp.eq.b32 %p2, %r3, 1;\n\t@%p2 bra M;\n\tbar.sync 0;\nM:\n",
    ]);
    let predicated = |condition: &str| {
        format!(
            "\t{condition}\n\tmov.b32 %r3, 1;\n\t@%p1 mov.b32 %r3, 2;\n\t\
             setp.eq.b32 %p2, %r3, 1;\n\t@%p2 bra M;\n\tbar.sync 0;\nM:\n"
        )
    };
    assert_divergent(&[&predicated("setp.ne.b32 %p1, %r1, 0;")]);
    assert_convergent(&[&predicated("setp.ne.b32 %p1, %r2, 0;")]);
}

#[test]
fn a_loop_that_lanes_leave_at_different_times_makes_its_counter_vary() {
    let counted = |bound: &str, inside: &str, behind: &str| {
        format!(
            "\tmov.b32 %r3, 0;\nL:\n{inside}\tadd.s32 %r3, %r3, 1;\n\t\
             setp.lt.u32 %p1, %r3, {bound};\n\t@%p1 bra L;\n{behind}"
        )
    };
    let barrier = "\tbar.sync 0;\n";
    let by_counter = "\tsetp.eq.b32 %p2, %r3, 9;\n\t@%p2 bra M;\n\tbar.sync 0;\nM:\n";
    assert_convergent(&[
        &counted("%r2", barrier, ""),
        &counted("%r2", "", by_counter),
        &counted("%r1", "", barrier),
    ]);
    assert_divergent(&[
        &counted("%r1", barrier, ""),
        &counted("%r1", "", by_counter),
    ]);
}

#[test]
fn lanes_that_wait_come_together_when_all_have_seen_it() {
    let wait = "L:\n\t{ .reg .pred done;\nmbarrier.try_wait.parity.shared::cta.b64 done, [%r2], 0;\n\
                selp.u32 %r3, 1, 0, done; }\n\tsetp.eq.b32 %p1, %r3, 0;\n\t@%p1 bra L;\n";
    assert_convergent(&[&format!("{wait}\tbar.sync 0;\n")]);
    assert_divergent(&[&wait.replace("\tsetp.eq", "\tbar.sync 0;\n\tsetp.eq")]);
    // What was read last differs, but for all of them it was what ended the wait.
    assert_divergent(&[&format!(
        "{wait}\tsetp.eq.b32 %p2, %r3, 7;\n\t@%p2 bra M;\n\tbar.sync 0;\nM:\n"
    )]);
}

#[test]
fn an_indexed_branch_diverges_with_its_index() {
    let table = |index: &str| {
        format!(
            "L_table:\n\t.branchtargets L, M, N;\n\tbrx.idx {index}, L_table;\nL:\n\tbar.sync 0;\n\t\
             bra.uni N;\nM:\n\tst.shared.u32 [%r2], 1;\nN:\n"
        )
    };
    assert_convergent(&[&table("%r2")]);
    assert_divergent(&[&table("%r1")]);
}

#[test]
fn a_predicate_of_the_instruction_itself_counts() {
    let guarded = |condition: &str| format!("\t{condition}\n\t@!%p1 bar.sync 0;\n");
    assert_convergent(&[&guarded("setp.ne.b32 %p1, %r2, 0;")]);
    let found = check(&program(&guarded("setp.ne.b32 %p1, %r1, 0;"))).unwrap();
    assert_eq!(
        found[0].to_string(),
        "`@!%p1 bar.sync 0` (line 16) has a predicate that differs between lanes"
    );
}

#[test]
fn a_word_of_the_compiler_that_a_branch_is_uniform_counts_for_nothing() {
    assert_divergent(&["\tsetp.ne.b32 %p1, %r1, 0;\n\t@%p1 bra.uni L;\n\tbar.sync 0;\nL:\n"]);
}

#[test]
fn every_instruction_of_a_whole_warp_is_looked_at() {
    for instruction in [
        "bar.sync 1, 128",
        "bar.warp.sync -1",
        "barrier.cluster.wait.aligned",
        "wgmma.fence.sync.aligned",
        "setmaxnreg.inc.sync.aligned.u32 232",
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r4, %r5, %r6, %r7}, [%r2]",
        "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r2], {%r4, %r5, %r6, %r7}",
        "shfl.sync.idx.b32 %r4, %r1, 0, 31, -1",
        "vote.sync.ballot.b32 %r4, %p2, -1",
    ] {
        let body = format!("\tsetp.ne.b32 %p1, %r1, 0;\n\t@%p1 bra L;\n\t{instruction};\nL:\n");
        assert_eq!(divergent(&body), [instruction]);
    }
    // One thread may arrive for itself (PTX ISA, "barrier.cluster", without `.aligned`).
    for instruction in [
        "barrier.cluster.arrive.relaxed",
        "mbarrier.arrive.shared::cta.b64 _, [%r2]",
    ] {
        let body = format!("\tsetp.ne.b32 %p1, %r1, 0;\n\t@%p1 bra L;\n\t{instruction};\nL:\n");
        assert_convergent(&[&body]);
    }
}

#[test]
fn a_name_means_the_innermost_declaration() {
    // Two predicates of one name, the first of the lane, the second of the launch.
    let body = "\t{ .reg .pred p; setp.ne.b32 p, %r1, 0; @p st.shared.u32 [%r2], 1; }\n\t\
                { .reg .pred p; setp.ne.b32 p, %r2, 0; selp.u32 %r3, 1, 0, p; }\n\t\
                setp.eq.b32 %p1, %r3, 0;\n\t@%p1 bra L;\n\tbar.sync 0;\nL:\n";
    assert_convergent(&[body]);
    assert_divergent(&[&body.replace("p, %r2", "p, %r1")]);
}

#[test]
fn an_instruction_may_stand_on_several_lines() {
    let body = "\tsetp.ne.b32 %p1, %r1, 0;\n\t@%p1 bra L;\n\t\
                mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32\n\t\t{%r3, %r4, %r5, %r6},\n\t\t\
                {%r7, %r8, %r9, %r10},\n\t\t{%r11, %r12},\n\t\t{%r3, %r4, %r5, %r6};\nL:\n";
    let found = check(&program(body)).unwrap();
    assert_eq!((found.len(), found[0].line), (1, 17));
}

#[test]
fn a_function_that_was_not_inlined_is_looked_at() {
    let function = |body: &str| {
        format!(
            ".func helper();\n.func (.param .b32 func_retval0) helper(\n\t.param .b32 helper_param_0\n)\n\
             {{\n\t.reg .pred \t%p<2>;\n\t.reg .b32 \t%r<4>;\n{body}\tret;\n}}\n"
        )
    };
    let call = |condition: &str| {
        format!(
            "\t{condition}\n\t@%p1 bra L;\n\t{{ // callseq 0, 0\n\t.param .b32 param0;\n\t\
             st.param.b32 [param0], %r2;\n\t.param .b32 retval0;\n\t\
             call.uni (retval0), helper, (param0);\n\tld.param.b32 %r3, [retval0];\n\t}}\nL:\n"
        )
    };
    let found = |function: &str, body: &str| {
        let found = check(&format!("{}{function}", program(body))).unwrap();
        found.into_iter().map(|found| found.instruction)
    };
    let (lane, launch) = ("setp.eq.b32 %p1, %r1, 0;", "setp.eq.b32 %p1, %r2, 0;");
    let synchronises = function("\tbar.sync 0;\n");
    let instruction = "call.uni (retval0), helper, (param0)";
    assert!(found(&synchronises, &call(lane)).eq([instruction]));
    assert!(found(&synchronises, &call(launch)).eq([""; 0]));
    assert!(found(&function(""), &call(lane)).eq([""; 0]));
    // Its parameter may be the lane's, and so may its result.
    let by_parameter = function(
        "\tld.param.b32 %r1, [helper_param_0];\n\tsetp.eq.b32 %p1, %r1, 0;\n\t\
         @%p1 bra L;\n\tbar.sync 0;\nL:\n",
    );
    assert!(found(&by_parameter, "").eq(["bar.sync 0"]));
    let by_result = call(launch) + &skipped_where("setp.eq.b32 %p1, %r3, 0;");
    let by_result = by_result.replace("L:", "L1:").replacen("L1:", "L:", 1);
    let by_result = by_result.replace("bra \tL;", "bra \tL1;");
    assert!(found(&function(""), &by_result).eq(["bar.sync 0"]));
}

#[test]
fn a_register_may_hold_one_value_after_another() {
    // %r3 is 0 where the counter begins, and what a lane has loaded from then on.
    let body = |behind: &str| {
        format!(
            "\tmov.b32 %r3, 0;\n\tmov.b32 %r4, %r3;\nL:\n\tld.shared.u32 %r3, [%r1];\n\t\
             st.shared.u32 [%r1], %r3;\n\tadd.s32 %r4, %r4, 1;\n\tsetp.lt.u32 %p1, %r4, %r2;\n\t\
             bar.sync 0;\n\t@%p1 bra L;\n{behind}"
        )
    };
    assert_convergent(&[&body("")]);
    assert_divergent(&[&body("").replace("%r4, %r4, 1", "%r4, %r4, %r3")]);
    // The upper half of a register pair is not its lower bits.
    let halves = "\tcvt.u64.u32 %rd1, %r1;\n\tshl.b64 %rd2, %rd1, 32;\n\t\
                  mov.b64 {_, %r3}, %rd2;\n\tand.b32 %r4, %r3, 31;\n";
    assert_divergent(&[&(halves.to_owned() + &skipped_where("setp.eq.b32 %p1, %r4, 0;"))]);
}

#[test]
fn text_that_cannot_be_read_is_an_error() {
    let line = |body: &str| match check(&program(body)) {
        Err(Error::Syntax { line, .. }) => line,
        other => panic!("{other:?}"),
    };
    assert_eq!(line("\tbar.sync 0;\n\t@%p1 bra nowhere;\n"), 16);
    assert_eq!(line("\tbar.sync 0;\n\t@nobody bra L;\nL:\n"), 16);
    assert_eq!(line("\t{ bar.sync 0 }\n"), 15);
    let open = program("").replace("\tret;\n}\n", "");
    assert!(matches!(check(&open), Err(Error::Syntax { .. })));
}
