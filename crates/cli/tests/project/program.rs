//! A program that stays: started in a terminal of its own, and stopped as a person stops it.
//!
//! Invariant: it doesn't outlive the test that started it.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// How long it may take to say what it shall: it may compile first.
const PATIENCE: Duration = Duration::from_secs(600);

/// A running program.
pub(crate) struct Program {
    child: Child,
}

impl Program {
    /// Starts it, and waits until it has printed so many lines; these.
    pub(crate) fn start(command: &mut Command, lines: usize) -> (Self, String) {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("it starts");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let (send, said) = mpsc::channel();
        // Reads for as long as it prints, so that it is never kept from going on.
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = send.send(line);
            }
        });
        let program = Self { child };
        let mut text = String::new();
        for _ in 0..lines {
            let line = said.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|e| panic!("{command:?}: no more output ({e}) after:\n{text}"));
            text.push_str(&line);
            text.push('\n');
        }
        (program, text)
    }

    /// Ctrl-C, and the wait until it has ended.
    pub(crate) fn interrupt(mut self) -> ExitStatus {
        self.signal(Signal::INT)
    }

    fn signal(&mut self, signal: Signal) -> ExitStatus {
        if let Ok(None) = self.child.try_wait() {
            let _ = kill_process(Pid::from_child(&self.child), signal);
        }
        self.child.wait().expect("it ends")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.signal(Signal::TERM);
    }
}
