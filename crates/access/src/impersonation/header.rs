//! The impersonation headers.

use std::collections::BTreeMap;

use homeostat_model::Status;
use homeostat_model::field::quote;
use percent_encoding::percent_decode_str;

use crate::User;

const EXTRA: &str = "impersonate-extra-";

/// The user that headers (lower-case names, values in their order) want to be, as they say it; `None` where they
/// don't. 400 for groups, uid or extra without a user. Values are taken as bytes, so that one that is no text is not
/// passed over, which would leave the requester with their own rights.
pub fn wanted<'a, V: AsRef<[u8]>>(
    headers: impl IntoIterator<Item = (&'a str, V)>,
) -> Result<Option<User>, Status> {
    let mut user = User::default();
    let mut more = false;
    for (name, value) in headers {
        if !name.starts_with("impersonate-") {
            continue;
        }
        let value = String::from_utf8_lossy(value.as_ref()).into_owned();
        match name {
            "impersonate-user" if user.name.is_empty() => user.name = value,
            "impersonate-uid" if user.uid.is_empty() => user.uid = value,
            "impersonate-group" => {
                more = true;
                user.groups.push(value);
            }
            _ => {
                let Some(key) = name.strip_prefix(EXTRA) else { continue };
                more = true;
                // Keys that are not well encoded are taken as they are.
                let key =
                    percent_decode_str(key).decode_utf8().map_or_else(|_| key.to_owned(), |k| k.into_owned());
                user.extra.entry(key).or_default().push(value);
            }
        }
    }
    match (user.name.is_empty(), more || !user.uid.is_empty()) {
        (false, _) => Ok(Some(user)),
        (true, false) => Ok(None),
        (true, true) => Err(Status::bad_request(format!(
            "requested {} without impersonating a user name",
            go_syntax(&user)
        ))),
    }
}

/// The user as Go's `%#v` prints it.
fn go_syntax(user: &User) -> String {
    let list =
        |l: &[String]| format!("[]string{{{}}}", l.iter().map(|s| quote(s)).collect::<Vec<_>>().join(", "));
    let map = |m: &BTreeMap<String, Vec<String>>| {
        let entries: Vec<String> = m.iter().map(|(k, v)| format!("{}:{}", quote(k), list(v))).collect();
        format!("map[string][]string{{{}}}", entries.join(", "))
    };
    let groups = if user.groups.is_empty() { "[]string(nil)".to_owned() } else { list(&user.groups) };
    let extra = if user.extra.is_empty() { "map[string][]string(nil)".to_owned() } else { map(&user.extra) };
    let (name, uid) = (quote(&user.name), quote(&user.uid));
    format!("&user.DefaultInfo{{Name:{name}, UID:{uid}, Groups:{groups}, Extra:{extra}}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers() {
        let jane = wanted([
            ("accept", "x"),
            ("impersonate-user", "jane"),
            ("impersonate-uid", "abc-123"),
            ("impersonate-group", "a"),
            ("impersonate-group", "b"),
            ("impersonate-extra-scopes", "view"),
            ("impersonate-extra-acme.com%2fproject", "some-project"),
        ])
        .unwrap()
        .unwrap();
        assert_eq!((&*jane.name, &*jane.uid, jane.groups.len()), ("jane", "abc-123", 2));
        assert_eq!(jane.extra["scopes"], ["view"]);
        assert_eq!(jane.extra["acme.com/project"], ["some-project"]);
        assert_eq!(wanted([("accept", "x")]).unwrap(), None);
        let odd = wanted([("impersonate-user", &b"\xff"[..])]).unwrap().unwrap();
        assert_eq!(odd.name, "\u{fffd}");
    }

    #[test]
    fn parts_without_a_user() {
        for (header, want) in [
            (
                ("impersonate-group", "system:masters"),
                r#"requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"system:masters"}, Extra:map[string][]string(nil)} without impersonating a user name"#,
            ),
            (
                ("impersonate-uid", "5"),
                r#"requested &user.DefaultInfo{Name:"", UID:"5", Groups:[]string(nil), Extra:map[string][]string(nil)} without impersonating a user name"#,
            ),
            (
                ("impersonate-extra-a", "b"),
                r#"requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string(nil), Extra:map[string][]string{"a":[]string{"b"}}} without impersonating a user name"#,
            ),
        ] {
            let status = wanted([header]).unwrap_err();
            assert_eq!((status.code, &*status.message), (400, want));
        }
    }
}
