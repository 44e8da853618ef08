//! [`Crew`]: the ranks of `check --processes` and `check --threads`.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::rank::{self, Arguments};

/// Ranks that do what they are told, line by line.
pub struct Crew(Vec<Worker>);

/// One rank.
struct Worker {
    /// `None` once nothing more is asked.
    commands: Option<Box<dyn Write>>,
    answers: Box<dyn BufRead>,
    body: Body,
}

enum Body {
    Process(Child),
    Thread(Option<JoinHandle<()>>),
}

impl Crew {
    /// Starts `ranks` ranks like `like`, as processes or as threads, which join each other.
    pub fn start(like: &Arguments, ranks: usize, are_processes: bool) -> io::Result<Self> {
        let mut crew = Crew(Vec::new());
        let mut address = None;
        for rank in 0..ranks {
            let arguments = Arguments {
                rank,
                ranks,
                address: address.clone(),
                ..like.clone()
            };
            let mut worker = match are_processes {
                true => process(&arguments)?,
                false => thread(arguments)?,
            };
            if rank == 0 {
                address = Some(worker.answer()?);
            }
            crew.0.push(worker);
        }
        for (rank, worker) in crew.0.iter_mut().enumerate() {
            let answer = worker.answer()?;
            if answer != "joined" {
                return Err(io::Error::other(format!("rank {rank}: {answer}")));
            }
        }
        Ok(crew)
    }

    /// Gives all ranks a command, and returns their answers.
    pub fn ask(&mut self, command: &str) -> io::Result<Vec<String>> {
        self.tell(command)?;
        self.0.iter_mut().map(Worker::answer).collect()
    }

    fn tell(&mut self, command: &str) -> io::Result<()> {
        for worker in &mut self.0 {
            if let Some(commands) = &mut worker.commands {
                writeln!(commands, "{command}")?;
                commands.flush()?;
            }
        }
        Ok(())
    }

    /// Lets all ranks run until they fail, and kills `victim` after `delay`. Returns what the
    /// others say, and how long after the kill the last of them said it.
    pub fn kill(&mut self, victim: usize, delay: Duration) -> io::Result<(Vec<String>, Duration)> {
        self.tell("load")?;
        thread::sleep(delay);
        let begin = Instant::now();
        if let Body::Process(child) = &mut self.0[victim].body {
            child.kill()?;
        }
        let others = self.0.iter_mut().enumerate();
        let others = others.filter(|(rank, _)| *rank != victim);
        let answers: io::Result<_> = others.map(|(_, worker)| worker.answer()).collect();
        Ok((answers?, begin.elapsed()))
    }
}

impl Worker {
    fn answer(&mut self) -> io::Result<String> {
        let mut line = String::new();
        match self.answers.read_line(&mut line)? {
            0 => Err(io::Error::other("a rank has ended without an answer")),
            _ => Ok(line.trim_end().into()),
        }
    }
}

impl Drop for Crew {
    /// The ranks end when there are no more commands.
    fn drop(&mut self) {
        for worker in &mut self.0 {
            worker.commands = None;
        }
        for worker in &mut self.0 {
            match &mut worker.body {
                Body::Process(child) => drop(child.wait()),
                Body::Thread(thread) => {
                    if let Some(thread) = thread.take() {
                        drop(thread.join());
                    }
                }
            }
        }
    }
}

fn process(arguments: &Arguments) -> io::Result<Worker> {
    let mut command = Command::new(std::env::current_exe()?);
    let device = clap::ValueEnum::to_possible_value(&arguments.device);
    let device = device.map_or_else(String::new, |value| value.get_name().into());
    command.args(["rank", "--device", &device]);
    for (name, value) in [
        ("--rank", arguments.rank as u64),
        ("--ranks", arguments.ranks as u64),
        ("--largest", arguments.largest as u64),
        ("--limit", arguments.limit),
    ] {
        command.args([name, &value.to_string()]);
    }
    for (name, is_set) in [("--delays", arguments.delays), ("--nccl", arguments.nccl)] {
        command.args(is_set.then_some(name));
    }
    if let Some(address) = &arguments.address {
        command.args(["--address", address]);
    }
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let (Some(commands), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(io::Error::other("a process without pipes"));
    };
    Ok(Worker {
        commands: Some(Box::new(commands)),
        answers: Box::new(BufReader::new(answers)),
        body: Body::Process(child),
    })
}

fn thread(arguments: Arguments) -> io::Result<Worker> {
    let (commands_end, commands) = io::pipe()?;
    let (answers, mut answers_end) = io::pipe()?;
    let body = thread::Builder::new().spawn(move || {
        // Whoever asks sees that the pipe is closed.
        let _ = rank::serve(&arguments, BufReader::new(commands_end), &mut answers_end);
    })?;
    Ok(Worker {
        commands: Some(Box::new(commands)),
        answers: Box::new(BufReader::new(answers)),
        body: Body::Thread(Some(body)),
    })
}
