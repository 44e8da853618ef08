//! Members of a group, each a thread: what they compute together, and what they say when one of
//! them differs, fails, leaves or does not come. (`check.rs` has random cases, and processes.)

use std::net::{SocketAddr, TcpListener};
use std::thread;
use std::time::{Duration, Instant};

use tilewise::{Activation, Device};
use tilewise_parallel::program::Operation;
use tilewise_parallel::{Engine, Error, Member, MemberPlan, Options, RankError};

/// Long enough for anything on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// A limit that is meant to pass.
const SHORT: Duration = Duration::from_millis(300);

/// Runs `body` on every rank, and returns what it returned.
fn members<R: Send>(ranks: usize, limit: Duration, body: impl Fn(Member) -> R + Sync) -> Vec<R> {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::scope(|scope| {
        let body = &body;
        let others: Vec<_> = (1..ranks)
            .map(|rank| {
                scope.spawn(move || {
                    let member = Member::join(&Device::cpu(), rank, ranks, address, limit);
                    body(member.expect("joined"))
                })
            })
            .collect();
        let member = Member::listen(&Device::cpu(), ranks, listener, limit);
        let mut results = vec![body(member.expect("joined"))];
        for other in others {
            results.push(other.join().expect("no panic"));
        }
        results
    })
}

/// A plan of 1×K times K×1 on each of `ranks`, with K = 1: rank r has r + 1 and 1.
struct Small {
    plan: MemberPlan<f32, f32>,
    device: Device,
    ranks: usize,
    rank: usize,
}

impl Small {
    fn new(member: &Member) -> Result<Self, Error> {
        let device = member.device().clone();
        let a = device.zeros::<f32>(1, 1)?;
        let mut c = device.zeros::<f32>(member.ranks(), 1)?;
        let plan = member.all_gather_matmul(&Options::new(), &a, &a, &mut c)?;
        Ok(Small {
            plan,
            device,
            ranks: member.ranks(),
            rank: member.rank(),
        })
    }

    /// Runs, and checks the result.
    fn run(&mut self, factor: f32) -> Result<(), Error> {
        let own = (self.rank + 1) as f32;
        let a = self.device.from_slice(&[own * factor], 1, 1)?;
        let b = self.device.from_slice(&[1.0_f32], 1, 1)?;
        let mut c = self.device.zeros::<f32>(self.ranks, 1)?;
        self.plan.run(&a, &b, &mut c)?;
        self.plan.finish()?;
        let expected: Vec<_> = (0..self.ranks).map(|r| (r + 1) as f32 * factor).collect();
        assert_eq!(c.to_vec()?, expected);
        Ok(())
    }
}

/// The error between ranks.
#[track_caller]
fn rank_error<T>(result: Result<T, Error>) -> RankError {
    match result {
        Err(Error::Rank(error)) => error,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("accepted"),
    }
}

#[test]
fn runs_follow_each_other_over_the_wrap_of_epochs() {
    members(3, LIMIT, |member| {
        let mut first = Small::new(&member).expect("a plan");
        let mut second = Small::new(&member).expect("a plan");
        for run in 0..200 {
            first.run(run as f32).expect("a run");
            if run % 3 == 0 {
                second.run(-(run as f32)).expect("a run");
            }
        }
        // What was dropped leaves the rest as it was.
        drop(first);
        second.run(0.5).expect("a run");
        Small::new(&member)
            .expect("a plan")
            .run(2.0)
            .expect("a run");
    });
}

/// What all ranks say to an operation that `plan` plans otherwise on one of them.
fn said(plan: impl Fn(&Member) -> Result<(), Error> + Sync) -> Vec<String> {
    members(3, LIMIT, |member| {
        let error = plan(&member).expect_err("refused");
        // What was refused has changed nothing.
        Small::new(&member)
            .expect("a plan")
            .run(1.0)
            .expect("a run");
        error.to_string()
    })
}

#[test]
fn disagreements_are_refused_on_all_ranks() {
    let zeros = |rows, cols| Device::cpu().zeros::<f32>(rows, cols).expect("memory");
    let planned = |options: Options, operation| {
        move |member: &Member, a: (usize, usize), b: (usize, usize), c: (usize, usize)| {
            let (a, b, mut c) = (zeros(a.0, a.1), zeros(b.0, b.1), zeros(c.0, c.1));
            member.plan(operation, &options, &a, &b, &mut c).map(drop)
        }
    };
    let plain = planned(Options::new(), Operation::AllGather);

    let shapes = said(|member| {
        let k = if member.rank() == 2 { 7 } else { 8 };
        plain(member, (4, k), (k, 2), (12, 2))
    });
    let expected = "a of rank 2 is 4×7 with strides (7, 1); accepted: 4×8";
    assert_eq!(shapes, [expected; 3]);

    let operations = said(|member| {
        let operation = match member.rank() {
            1 => Operation::AllReduce,
            _ => Operation::AllGather,
        };
        planned(Options::new(), operation)(member, (4, 8), (8, 2), (12, 2))
    });
    let expected = "the operation of rank 1 is AllReduce; accepted: AllGather, as on rank 0";
    assert_eq!(operations, [expected; 3]);

    let options = said(|member| {
        let options = match member.rank() {
            2 => Options::new().activation(Activation::Relu),
            _ => Options::new(),
        };
        planned(options, Operation::AllGather)(member, (4, 8), (8, 2), (12, 2))
    });
    let expected = "the option activation of rank 2 is Relu; accepted: Identity, as on rank 0";
    assert_eq!(options, [expected; 3]);

    let types = said(|member| {
        let device = member.device();
        if member.rank() != 1 {
            return plain(member, (4, 8), (8, 2), (12, 2));
        }
        let a = device.zeros::<tilewise::bf16>(4, 8)?;
        let b = device.zeros::<tilewise::bf16>(8, 2)?;
        let mut c = device.zeros::<tilewise::bf16>(12, 2)?;
        (member.all_gather_matmul(&Options::new(), &a, &b, &mut c)).map(drop)
    });
    let expected = "the element type of a and b of rank 1 is bf16; accepted: f32, as on rank 0";
    assert_eq!(types, [expected; 3]);
}

#[test]
fn what_one_rank_cannot_do_all_refuse() {
    let said = said(|member| {
        let device = member.device();
        let a = device.zeros_batched::<f32>(if member.rank() == 1 { 2 } else { 1 }, 1, 1)?;
        let b = device.zeros::<f32>(1, 1)?;
        let mut c = device.zeros::<f32>(3, 1)?;
        (member.all_gather_matmul(&Options::new(), a.view(), &b, &mut c)).map(drop)
    });
    assert!(said[1].starts_with("a of rank 1 is "), "{}", said[1]);
    for other in [0, 2] {
        assert_eq!(said[other], format!("rank 1 failed: {}", said[1]));
    }
    let said = self::said(|member| {
        let (a, mut c) = (member.device().zeros(1, 1)?, member.device().zeros(3, 1)?);
        let options = Options::new().engine(Engine::Nccl);
        (member.all_gather_matmul::<f32, f32>(&options, &a, &a, &mut c)).map(drop)
    });
    assert!(
        said[0].starts_with("NCCL cannot run this operation"),
        "{}",
        said[0]
    );
}

#[test]
fn members_that_do_not_fit_are_refused_when_they_join() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let joining = thread::spawn(move || Member::join(&Device::cpu(), 1, 3, address, LIMIT));
    // Who is silent, and who talks of other things, is not taken for a member.
    let _silent = std::net::TcpStream::connect(address).expect("a connection");
    let mut other = std::net::TcpStream::connect(address).expect("a connection");
    std::io::Write::write_all(&mut other, b"GET / HTTP/1.1\r\n\r\n").expect("written");
    let found = rank_error(Member::listen(&Device::cpu(), 2, listener, LIMIT));
    assert_eq!(
        found.to_string(),
        "the number of ranks of rank 1 is 3; accepted: 2, as on rank 0"
    );
    assert_eq!(rank_error(joining.join().expect("no panic")), found);

    let device = Device::cpu();
    let too_high = Member::join(&device, 2, 2, address, LIMIT).map(drop);
    assert_eq!(too_high, Err(Error::NoSuchRank { rank: 2, ranks: 2 }));
    let none = Member::join(&device, 0, 0, address, LIMIT).map(drop);
    assert_eq!(none, Err(Error::NoRanks));
}

#[test]
fn ranks_that_never_come_are_named() {
    let missing = |rank| RankError::Missing { rank, limit: SHORT };
    // Nobody listens at a port that was just given back.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let begin = Instant::now();
    let joined = Member::join(&Device::cpu(), 1, 2, address, SHORT);
    assert_eq!(rank_error(joined), missing(0));
    assert!(begin.elapsed() < LIMIT);

    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let joining = thread::spawn(move || Member::join(&Device::cpu(), 1, 3, address, LIMIT));
    // Rank 1 comes in time, or late; rank 2 does not come.
    let limit = Duration::from_secs(5);
    let found = rank_error(Member::listen(&Device::cpu(), 3, listener, limit));
    let named = |rank| RankError::Missing { rank, limit };
    assert!(found == named(2) || found == named(1), "{found}");
    match rank_error(joining.join().expect("no panic")) {
        RankError::Missing { .. } | RankError::Lost { rank: 0, .. } => {}
        other => panic!("{other}"),
    }
}

#[test]
fn a_rank_that_does_not_run_ends_the_others() {
    let limit = Duration::from_secs(5);
    let errors = members(3, limit, |member| {
        let mut small = Small::new(&member).expect("a plan");
        if member.rank() == 2 {
            // Until the others have given up.
            while small.plan.finish().is_ok() && member.failure().is_none() {
                thread::sleep(Duration::from_millis(1));
            }
        }
        let begin = Instant::now();
        let error = rank_error(small.run(1.0));
        assert!(begin.elapsed() < LIMIT);
        // There is nothing to wait for any more.
        assert_eq!(rank_error(small.run(1.0)), error);
        assert_eq!(rank_error(Small::new(&member)), error);
        error
    });
    let what = "do its part of a run".into();
    let late = RankError::Late {
        rank: 2,
        what,
        limit,
    };
    assert_eq!(errors, [late.clone(), late.clone(), late]);
}

#[test]
fn a_rank_that_does_not_plan_ends_the_others() {
    let limit = Duration::from_secs(5);
    let errors = members(3, limit, |member| {
        if member.rank() == 1 {
            while member.failure().is_none() {
                thread::sleep(Duration::from_millis(1));
            }
        }
        rank_error(Small::new(&member))
    });
    let what = "plan".into();
    let late = RankError::Late {
        rank: 1,
        what,
        limit,
    };
    assert_eq!(errors, [late.clone(), late.clone(), late]);
}

#[test]
fn a_rank_that_leaves_is_missed_when_it_is_needed() {
    let errors = members(3, LIMIT, |member| {
        let mut small = Small::new(&member).expect("a plan");
        small.run(1.0).expect("a run");
        if member.rank() == 1 {
            return None;
        }
        // The run before is not spoilt.
        small.plan.finish().expect("nothing under way");
        Some(rank_error(small.run(2.0)))
    });
    for error in errors.into_iter().flatten() {
        assert!(matches!(error, RankError::Lost { rank: 1, .. }), "{error}");
    }
}

#[test]
fn another_order_of_runs_is_refused() {
    let errors = members(2, LIMIT, |member| {
        let mut plans = [
            Small::new(&member).expect("a plan"),
            Small::new(&member).expect("a plan"),
        ];
        let order = if member.rank() == 0 { [0, 1] } else { [1, 0] };
        let results = order.map(|plan| plans[plan].run(1.0));
        results.into_iter().find_map(Result::err).expect("refused")
    });
    for error in errors {
        let argument = match error {
            Error::Rank(RankError::Disagreement { argument, .. }) => argument,
            error => panic!("{error}"),
        };
        assert_eq!(argument, "the order of runs");
    }
}

/// A connection that breaks in the middle of everything ends the group.
#[test]
fn garbage_at_the_address_does_no_harm() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address: SocketAddr = listener.local_addr().expect("an address");
    let joining = thread::spawn(move || {
        let mut stranger = std::net::TcpStream::connect(address).expect("a connection");
        let _ = std::io::Write::write_all(&mut stranger, &[255; 100]);
        drop(stranger);
        let member = Member::join(&Device::cpu(), 1, 2, address, LIMIT)?;
        Small::new(&member)?.run(1.0)
    });
    let member = Member::listen(&Device::cpu(), 2, listener, LIMIT).expect("joined");
    Small::new(&member)
        .expect("a plan")
        .run(1.0)
        .expect("a run");
    assert_eq!(joining.join().expect("no panic"), Ok(()));
}
