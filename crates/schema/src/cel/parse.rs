//! From a source to a syntax tree.
//!
//! Errors print as cel-go prints them: line, column, the line itself and an arrow. Invariant: nesting is limited, so
//! that neither parsing nor evaluation can exhaust the stack.

use super::ast::{Expr, Kind, Loop, Op, Which};
use super::lex::{Token, is_reserved, tokens};
use super::value::Val;

/// Levels of nesting.
const MAX_DEPTH: usize = 60;

/// Namespaces of functions: `sets.contains(a, b)` is no method of a variable `sets`.
const NAMESPACES: [&str; 7] = ["sets", "optional", "strings", "lists", "format", "ip", "cidr"];

/// Parses an expression. The error is complete: `ERROR: <input>:1:5: Syntax error: …`.
pub(super) fn parse(source: &str) -> Result<Expr, String> {
    let explain = |(at, why): (usize, String)| error(source, at, &why);
    let tokens = tokens(source).map_err(explain)?;
    let mut parser = Parser { tokens, next: 0, depth: 0 };
    let expr = parser.expr().map_err(explain)?;
    match parser.peek() {
        Token::End => Ok(expr),
        _ => Err(explain(parser.unexpected("<EOF>"))),
    }
}

/// An error as cel-go prints it.
pub(super) fn error(source: &str, at: usize, why: &str) -> String {
    let before = &source[..at.min(source.len())];
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |i| i + 1);
    let column = before[start..].chars().count();
    let text = source[start..].lines().next().unwrap_or_default();
    format!("ERROR: <input>:{line}:{}: {why}\n | {text}\n | {}^", column + 1, ".".repeat(column))
}

struct Parser {
    tokens: Vec<(usize, Token)>,
    next: usize,
    depth: usize,
}

type Parsed<T> = Result<T, (usize, String)>;

impl Parser {
    fn peek(&self) -> &Token {
        &self.tokens[self.next.min(self.tokens.len() - 1)].1
    }

    fn at(&self) -> usize {
        self.tokens[self.next.min(self.tokens.len() - 1)].0
    }

    fn take(&mut self) -> Token {
        let token = self.peek().clone();
        self.next += 1;
        token
    }

    fn sign(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Token::Sign(s) if *s == sign);
        self.next += usize::from(found);
        found
    }

    fn unexpected(&self, expected: &str) -> (usize, String) {
        let shown = match self.peek() {
            Token::End => "<EOF>".to_owned(),
            Token::Ident(s) | Token::Quoted(s) => s.to_string(),
            Token::Sign(s) => (*s).to_owned(),
            Token::Literal(_) => "literal".to_owned(),
        };
        (self.at(), format!("Syntax error: mismatched input '{shown}' expecting {expected}"))
    }

    fn expect(&mut self, sign: &str) -> Parsed<()> {
        if self.sign(sign) { Ok(()) } else { Err(self.unexpected(&format!("'{sign}'"))) }
    }

    fn expr(&mut self) -> Parsed<Expr> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err((self.at(), "expression recursion limit exceeded".to_owned()));
        }
        let at = self.at();
        let condition = self.binary(0)?;
        let expr = if self.sign("?") {
            let yes = self.binary(0)?;
            self.expect(":")?;
            let no = self.expr()?;
            Expr::new(at, Kind::Cond(Box::new(condition), Box::new(yes), Box::new(no)))?
        } else {
            condition
        };
        self.depth -= 1;
        Ok(expr)
    }

    /// Binary operators by precedence, lowest first.
    fn binary(&mut self, level: usize) -> Parsed<Expr> {
        const LEVELS: [&[(&str, Op)]; 5] = [
            &[("||", Op::Or)],
            &[("&&", Op::And)],
            &[
                ("<=", Op::LessOrEqual),
                ("<", Op::Less),
                (">=", Op::GreaterOrEqual),
                (">", Op::Greater),
                ("==", Op::Equal),
                ("!=", Op::NotEqual),
                ("in", Op::In),
            ],
            &[("+", Op::Add), ("-", Op::Subtract)],
            &[("*", Op::Multiply), ("/", Op::Divide), ("%", Op::Remainder)],
        ];
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        loop {
            let at = self.at();
            let Some((_, op)) = operators.iter().find(|(sign, _)| self.sign(sign)) else { return Ok(left) };
            let right = self.binary(level + 1)?;
            left = Expr::new(at, Kind::Binary(*op, Box::new(left), Box::new(right)))?;
        }
    }

    fn unary(&mut self) -> Parsed<Expr> {
        let at = self.at();
        let mut nots = 0;
        while self.sign("!") {
            nots += 1;
        }
        if nots > 0 {
            let operand = self.member()?;
            return if nots % 2 == 1 { Expr::new(at, Kind::Not(Box::new(operand))) } else { Ok(operand) };
        }
        let mut minuses = 0;
        while self.sign("-") {
            minuses += 1;
        }
        if minuses == 0 {
            if let Token::Literal(Val::Int(i64::MIN)) = self.peek() {
                return Err((at, "invalid int literal".to_owned()));
            }
            return self.member();
        }
        // A minus before a number belongs to it.
        let number = match self.peek() {
            Token::Literal(Val::Int(n)) => Some(Val::Int(n.wrapping_neg())),
            Token::Literal(Val::Double(v)) => Some(Val::Double(-v)),
            _ => None,
        };
        if let Some(number) = number {
            minuses -= 1;
            self.tokens[self.next].1 = Token::Literal(number);
        }
        let operand = self.member()?;
        if minuses % 2 == 1 { Expr::new(at, Kind::Negate(Box::new(operand))) } else { Ok(operand) }
    }

    fn member(&mut self) -> Parsed<Expr> {
        let mut expr = self.primary()?;
        loop {
            let at = self.at();
            if self.sign(".") {
                let optional = self.sign("?");
                let name_at = self.at();
                let field = match self.take() {
                    Token::Ident(name) | Token::Quoted(name) => name,
                    Token::Sign("in") => "in".into(),
                    _ => {
                        self.next -= 1;
                        return Err(self.unexpected("IDENTIFIER"));
                    }
                };
                if !optional && self.sign("(") {
                    let args = self.args(")")?;
                    expr = call(expr, field, args, name_at)?;
                } else {
                    if is_reserved(&field) {
                        return Err((name_at, format!("reserved identifier: {field}")));
                    }
                    expr = Expr::new(at, Kind::Select { operand: Box::new(expr), field, optional })?;
                }
            } else if self.sign("[") {
                let optional = self.sign("?");
                let index = self.expr()?;
                self.expect("]")?;
                let kind = Kind::Index { operand: Box::new(expr), index: Box::new(index), optional };
                expr = Expr::new(at, kind)?;
            } else if matches!(self.peek(), Token::Sign("{"))
                && matches!(expr.kind, Kind::Ident(_) | Kind::Select { .. })
            {
                return Err((at, "undeclared reference to a message type (in container '')".to_owned()));
            } else {
                return Ok(expr);
            }
        }
    }

    fn args(&mut self, end: &str) -> Parsed<Vec<Expr>> {
        let mut args = Vec::new();
        if self.sign(end) {
            return Ok(args);
        }
        loop {
            args.push(self.expr()?);
            if self.sign(end) {
                return Ok(args);
            }
            self.expect(",")?;
        }
    }

    fn primary(&mut self) -> Parsed<Expr> {
        let at = self.at();
        let kind = match self.take() {
            Token::Literal(value) => Kind::Literal(value),
            Token::Ident(name) => {
                if is_reserved(&name) {
                    return Err((at, format!("reserved identifier: {name}")));
                }
                if self.sign("(") {
                    let args = self.args(")")?;
                    return global(name, args, at);
                }
                Kind::Ident(name)
            }
            Token::Sign(".") => match self.take() {
                Token::Ident(name) => Kind::Ident(name),
                _ => {
                    self.next -= 1;
                    return Err(self.unexpected("IDENTIFIER"));
                }
            },
            Token::Sign("(") => {
                let expr = self.expr()?;
                self.expect(")")?;
                return Ok(expr);
            }
            Token::Sign("[") => {
                let mut items = Vec::new();
                while !self.sign("]") {
                    let optional = self.sign("?");
                    items.push((self.expr()?, optional));
                    if !self.sign(",") {
                        self.expect("]")?;
                        break;
                    }
                }
                Kind::List(items)
            }
            Token::Sign("{") => {
                let mut entries = Vec::new();
                while !self.sign("}") {
                    let optional = self.sign("?");
                    let key = self.expr()?;
                    self.expect(":")?;
                    entries.push((key, self.expr()?, optional));
                    if !self.sign(",") {
                        self.expect("}")?;
                        break;
                    }
                }
                Kind::Map(entries)
            }
            _ => {
                self.next -= 1;
                return Err(self.unexpected("{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"));
            }
        };
        Expr::new(at, kind)
    }
}

fn global(function: Box<str>, mut args: Vec<Expr>, at: usize) -> Parsed<Expr> {
    if &*function == "has" && args.len() == 1 {
        return match args.remove(0).kind {
            Kind::Select { operand, field, optional: false } => Expr::new(at, Kind::Has { operand, field }),
            _ => Err((at, "invalid argument to has() macro".to_owned())),
        };
    }
    Expr::new(at, Kind::Call { target: None, function, args })
}

fn call(target: Expr, function: Box<str>, mut args: Vec<Expr>, at: usize) -> Parsed<Expr> {
    if let Kind::Ident(namespace) = &target.kind
        && NAMESPACES.contains(&&**namespace)
    {
        let function = format!("{namespace}.{function}").into();
        return Expr::new(at, Kind::Call { target: None, function, args });
    }
    let Some(which) = Which::named(&function, args.len()) else {
        return Expr::new(at, Kind::Call { target: Some(Box::new(target)), function, args });
    };
    let name = |expr: Expr| match expr.kind {
        Kind::Ident(name) => Ok(name),
        _ => Err((expr.at, "argument must be a simple name".to_owned())),
    };
    let two_variables = match which {
        Which::TransformList | Which::TransformMap | Which::TransformMapEntry => true,
        Which::All | Which::Exists | Which::ExistsOne => args.len() == 3,
        _ => false,
    };
    let first = name(args.remove(0))?;
    let second = if two_variables { Some(name(args.remove(0))?) } else { None };
    let filter = if args.len() == 2 { Some(args.remove(0)) } else { None };
    let Some(body) = args.pop() else { return Err((at, "too few arguments".to_owned())) };
    Expr::new(at, Kind::Loop(Box::new(Loop { which, range: target, first, second, filter, body })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_point_at_their_place() {
        let cases = [
            ("self.size ==", "ERROR: <input>:1:13: Syntax error: mismatched input '<EOF>'"),
            ("a\n+ )", "ERROR: <input>:2:3: Syntax error: mismatched input ')'"),
            ("self.if", "ERROR: <input>:1:6: reserved identifier: if"),
            ("has(x)", "ERROR: <input>:1:1: invalid argument to has() macro"),
            ("'abc", "ERROR: <input>:1:1: unterminated string literal"),
            ("1 # 2", "ERROR: <input>:1:3: Syntax error: token recognition error at: '#'"),
        ];
        for (source, want) in cases {
            let got = parse(source).unwrap_err();
            assert!(got.starts_with(want), "{got}");
        }
        assert!(parse(&"(".repeat(10_000)).is_err());
        assert!(parse(&"!".repeat(10_000)).is_err());
        assert!(parse(&format!("1{}", "+1".repeat(10_000))).is_err());
    }
}
