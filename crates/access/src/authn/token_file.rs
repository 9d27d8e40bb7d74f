//! Static tokens: a CSV file of `token,user name,uid,"group1,group2"`.
//!
//! The format is that of the reference's `--token-auth-file`. A token that stands twice means the last line.

use std::collections::HashMap;
use std::sync::Arc;

use crate::User;

/// Why a token file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenFileError {
    /// A line has too few columns.
    #[error(
        "token file must have at least 3 columns (token, user name, user uid), found {found} in line {line}"
    )]
    Columns {
        /// How many there are.
        found: usize,
        /// Where, from 1.
        line: usize,
    },
    /// A quoted column does not end, or something follows its end.
    #[error("a quoted column is malformed in line {line}")]
    Quote {
        /// Where, from 1.
        line: usize,
    },
}

/// Tokens and their users.
#[derive(Clone, Debug, Default)]
pub struct TokenFile(HashMap<String, Arc<User>>);

impl TokenFile {
    /// Parses the file's text. Lines without a token are passed over.
    pub fn parse(text: &str) -> Result<Self, TokenFileError> {
        let mut tokens = HashMap::new();
        for (line, columns) in records(text)? {
            let [token, name, uid, rest @ ..] = columns.as_slice() else {
                return Err(TokenFileError::Columns { found: columns.len(), line });
            };
            let groups = rest.first().filter(|g| !g.is_empty());
            let groups = groups.map(|g| g.split(',').map(str::to_owned).collect()).unwrap_or_default();
            if !token.is_empty() {
                let user = User { name: name.clone(), uid: uid.clone(), groups, ..User::default() };
                tokens.insert(token.clone(), Arc::new(user));
            }
        }
        Ok(Self(tokens))
    }

    /// Adds a token.
    pub fn insert(&mut self, token: impl Into<String>, user: User) {
        self.0.insert(token.into(), Arc::new(user));
    }

    /// The user of a token.
    pub fn user(&self, token: &str) -> Option<&User> {
        self.0.get(token).map(|u| &**u)
    }
}

/// The lines that are not empty, with their number and columns. A quoted column may hold commas, doubled quotes and
/// line ends.
fn records(text: &str) -> Result<Vec<(usize, Vec<String>)>, TokenFileError> {
    let mut out = Vec::new();
    let mut chars = text.chars().peekable();
    let mut line = 1;
    while chars.peek().is_some() {
        let (start, mut columns, mut column) = (line, Vec::new(), String::new());
        let mut quoted = false;
        loop {
            match chars.next() {
                None => break,
                Some('\r') if chars.peek() == Some(&'\n') => {}
                Some('\n') => {
                    line += 1;
                    break;
                }
                Some(',') => {
                    columns.push(std::mem::take(&mut column));
                    quoted = false;
                }
                Some('"') if column.is_empty() && !quoted => {
                    quoted = true;
                    loop {
                        match chars.next() {
                            None => return Err(TokenFileError::Quote { line: start }),
                            Some('"') if chars.peek() == Some(&'"') => column.extend(chars.next()),
                            Some('"') => break,
                            Some(c) => {
                                line += usize::from(c == '\n');
                                column.push(c);
                            }
                        }
                    }
                }
                Some(_) if quoted => return Err(TokenFileError::Quote { line: start }),
                Some('"') => return Err(TokenFileError::Quote { line: start }),
                Some(c) => column.push(c),
            }
        }
        if !(columns.is_empty() && column.is_empty() && !quoted) {
            columns.push(column);
            out.push((start, columns));
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn users() {
        let file = TokenFile::parse(concat!(
            "admintoken,admin,admin,\"system:masters\"\n",
            "\r\n",
            "t1,jane,u1,\"a,b\"\r\n",
            "t2,joe,u2\n",
            "t3,\"quo\"\"ted\",\"two\nlines\",c\n",
            ",nobody,x\n",
            "t2,later,u3,"
        ))
        .unwrap();
        for (token, want) in [
            ("admintoken", Some(("admin", "admin", vec!["system:masters"]))),
            ("t1", Some(("jane", "u1", vec!["a", "b"]))),
            ("t2", Some(("later", "u3", vec![]))),
            ("t3", Some(("quo\"ted", "two\nlines", vec!["c"]))),
            ("", None),
            ("x", None),
        ] {
            let got = file
                .user(token)
                .map(|u| (&*u.name, &*u.uid, u.groups.iter().map(|g| &**g).collect::<Vec<_>>()));
            assert_eq!(got, want, "{token}");
        }
    }

    #[test]
    fn errors() {
        for (text, want) in [
            ("a,b\n", TokenFileError::Columns { found: 2, line: 1 }),
            ("a,b,c\n\nx\n", TokenFileError::Columns { found: 1, line: 3 }),
            ("a,\"b,c", TokenFileError::Quote { line: 1 }),
            ("a,\"b\"c,d", TokenFileError::Quote { line: 1 }),
            ("a,b\"c,d", TokenFileError::Quote { line: 1 }),
        ] {
            assert_eq!(TokenFile::parse(text).map(|_| ()), Err(want), "{text}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in "[a\",\n\r ]{0,24}") {
            let _ = TokenFile::parse(&text);
        }
    }
}
