//! A page as blocks: what its reader is shown to type, and to change. Pure.
//!
//! Reading of a page only; what its blocks do is `reader`'s. A console block is trycmd's language without what would be
//! in a person's way: a command after which nothing is shown may print anything, one that ends in a complaint fails, and
//! times, ports and folders may differ from those that are printed.

/// A fenced block.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    /// The page and the line of the block's first line.
    pub(crate) place: String,
    /// The language of the fence, without its attributes.
    pub(crate) language: String,
    /// The lines inside.
    pub(crate) text: String,
    /// The file that the prose between the last block and this one names last.
    pub(crate) file: Option<String>,
    /// The heading that it stands under.
    pub(crate) heading: String,
}

/// A command, and what is shown of its output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Typed {
    /// As typed, without the prompt; `^C` is Ctrl-C.
    pub(crate) command: String,
    /// The lines after it.
    pub(crate) shown: Vec<String>,
}

/// The blocks of a page, in order.
pub(crate) fn blocks(name: &str, page: &str) -> Vec<Block> {
    let (mut blocks, mut prose, mut heading) = (Vec::new(), String::new(), String::new());
    let mut lines = page.lines().enumerate();
    while let Some((_, line)) = lines.next() {
        if let Some(info) = line.strip_prefix("```") {
            let language = info.split([',', ' ']).next().unwrap_or_default().to_owned();
            let inside = lines.by_ref().take_while(|(_, line)| *line != "```");
            let inside: Vec<(usize, &str)> = inside.collect();
            let place = format!("{name}:{}", inside.first().map_or(0, |(at, _)| at + 1));
            let text = inside.iter().map(|(_, line)| format!("{line}\n")).collect();
            blocks.push(Block { place, language, text, file: named(&prose), heading: heading.clone() });
            prose.clear();
        } else {
            if let Some(title) = line.strip_prefix("## ") {
                heading = title.to_owned();
            }
            prose.push_str(line);
            prose.push('\n');
        }
    }
    blocks
}

/// The last path in `code` that `prose` has.
fn named(prose: &str) -> Option<String> {
    let code = prose.split('`').skip(1).step_by(2);
    let path =
        |c: &&str| c.contains('/') && !c.contains(' ') && c.rsplit('/').next().unwrap_or(c).contains('.');
    code.filter(path).last().map(str::to_owned)
}

/// What a console block has its reader type.
pub(crate) fn typed(block: &Block) -> Vec<Typed> {
    let mut out: Vec<Typed> = Vec::new();
    for line in block.text.lines() {
        if line == "^C" {
            out.push(Typed { command: line.to_owned(), shown: Vec::new() });
        } else if let Some(command) = line.strip_prefix("$ ") {
            out.push(Typed { command: command.to_owned(), shown: Vec::new() });
        } else {
            let last =
                out.last_mut().unwrap_or_else(|| panic!("{}: no command before {line:?}", block.place));
            last.shown.push(line.to_owned());
        }
    }
    for typed in &mut out {
        // A blank line before the next command is for the eye.
        while typed.shown.last().is_some_and(String::is_empty) {
            typed.shown.pop();
        }
    }
    out
}

impl Typed {
    /// For trycmd; `there` says where the folders are that the page names.
    pub(crate) fn transcript(&self, there: impl Fn(&str) -> String) -> String {
        let fails = self.shown.first().is_some_and(|line| line.starts_with("homeostat: "));
        let status = if fails { "? failed\n" } else { "" };
        let shown: String = if self.shown.is_empty() {
            "...\n".to_owned()
        } else {
            self.shown.iter().map(|line| blur(&there(line)) + "\n").collect()
        };
        format!("$ {}\n{status}{shown}\n", self.command)
    }
}

/// `line` with holes where one run differs from another: ages, durations, free ports.
fn blur(line: &str) -> String {
    const HOLE: &str = "[..]";
    let number = |w: &str| !w.is_empty() && w.bytes().all(|b| b.is_ascii_digit());
    let words: Vec<&str> = line.split(' ').collect();
    let mut out = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let next = words.get(at + 1);
        let port = word.split_once("127.0.0.1:").filter(|(_, port)| number(port));
        out.push(match (port, next) {
            (Some((before, _)), _) => format!("{before}127.0.0.1:{HOLE}"),
            (None, Some(next)) if number(word) && next.starts_with("ms") => HOLE.to_owned(),
            (None, None) if word.strip_suffix('s').is_some_and(number) => HOLE.to_owned(),
            _ => (*word).to_owned(),
        });
    }
    out.join(" ")
}

/// `text` with the change that a diff block shows: hunks without line numbers, between `@@`. What is taken out or stands
/// around must be there, once.
pub(crate) fn change(diff: &Block, text: &str) -> String {
    let mut text = format!("\n{text}");
    for hunk in diff.text.split("@@\n") {
        let side = |sign: char| -> String {
            let lines = hunk.lines().filter(|l| l.is_empty() || l.starts_with([' ', sign]));
            lines.map(|l| format!("\n{}", l.get(1..).unwrap_or_default())).collect()
        };
        let (old, new) = (format!("{}\n", side('-')), format!("{}\n", side('+')));
        assert_eq!(text.matches(&old).count(), 1, "{}: not there, or more than once:{old}", diff.place);
        text = text.replacen(&old, &new, 1);
    }
    text.split_off(1)
}

#[test]
fn a_page_is_cut_into_what_is_typed_and_changed() {
    let page = "# A\n\n## B\n\nSee `src/a.rs` and `x`.\n\n```diff\n a\n-b\n+c\n@@\n d\n+e\n```\n\n```console\n$ x y\n\
                z  1/1  3s\n\n$ run\nat https://127.0.0.1:80 after 35 ms in /home/you/x\n$ no\nhomeostat: no\n^C\n```\n";
    let blocks = blocks("a.md", page);
    assert_eq!((blocks[0].place.as_str(), blocks[0].file.as_deref()), ("a.md:8", Some("src/a.rs")));
    assert_eq!((blocks[1].heading.as_str(), &blocks[1].file), ("B", &None));
    assert_eq!(change(&blocks[0], "a\nb\nd\n"), "a\nc\nd\ne\n");
    let texts: Vec<String> =
        typed(&blocks[1]).iter().map(|t| t.transcript(|line| line.replace("/home/you", "/tmp"))).collect();
    assert_eq!(
        texts,
        [
            "$ x y\nz  1/1  [..]\n\n",
            "$ run\nat https://127.0.0.1:[..] after [..] ms in /tmp/x\n\n",
            "$ no\n? failed\nhomeostat: no\n\n",
            "$ ^C\n...\n\n",
        ]
    );
}
