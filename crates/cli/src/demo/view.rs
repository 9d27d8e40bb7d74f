//! How the demo shows itself: a line for each stage with its time and, on a terminal, a live table below them.

use std::io::{IsTerminal as _, Write as _};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use tokio::time::Instant;

use super::progress::Row;

/// Lines, and a table where there is a terminal.
pub(super) struct View {
    begin: Instant,
    live: Option<Live>,
}

struct Live {
    area: MultiProgress,
    lines: Vec<ProgressBar>,
}

impl View {
    /// Times count from `begin`.
    pub(super) fn new(begin: Instant) -> Self {
        let live = std::io::stdout().is_terminal().then(|| {
            let area = MultiProgress::with_draw_target(indicatif::ProgressDrawTarget::stdout());
            Live { area, lines: Vec::new() }
        });
        Self { begin, live }
    }

    /// A stage, with the seconds since the beginning.
    pub(super) fn stage(&self, text: &str) {
        self.say(&format!("{:8.3} s  {text}", self.begin.elapsed().as_secs_f64()));
    }

    /// Text above the table.
    pub(super) fn say(&self, text: &str) {
        match &self.live {
            // A terminal that went away must not end the demo.
            Some(live) => drop(live.area.println(text)),
            None => drop(writeln!(std::io::stdout(), "{text}")),
        }
    }

    /// Redraws the table.
    pub(super) fn table(&mut self, rows: &[Row]) {
        let Some(live) = &mut self.live else { return };
        let mut lines = vec![String::new(), line(["KIND", "NAME", "READY", "STATE", "NODE"])];
        lines.extend(rows.iter().map(|r| line([r.kind, &r.name, &r.ready, &r.state, &r.node])));
        while live.lines.len() < lines.len() {
            let style =
                ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_bar());
            live.lines.push(live.area.add(ProgressBar::new_spinner().with_style(style)));
        }
        for surplus in live.lines.drain(lines.len()..) {
            live.area.remove(&surplus);
        }
        for (bar, text) in live.lines.iter().zip(lines) {
            bar.set_message(text);
        }
    }

    /// Leaves the last table where it is.
    pub(super) fn end(&mut self) {
        for bar in self.live.iter().flat_map(|l| &l.lines) {
            bar.abandon();
        }
    }
}

fn line(cells: [&str; 5]) -> String {
    let [kind, name, ready, state, node] = cells;
    format!("  {kind:<14} {name:<24} {ready:<7} {state:<20} {node}").trim_end().to_owned()
}
