//! The words of a script, as far as anything depends on them.

/// What a word means for itself and for what follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// A name like any other.
    Name,
    Location,
    Top,
    /// A name of the window: `window`, `self`, `parent`, `globalThis`.
    Window,
    PostMessage,
    /// `import`, `export`
    Imports,
    From,
    /// `var`, `let`, `const`
    Declares,
    /// `get`, `set`, `async`, `static`
    Accessor,
    /// `if`, `while`, `for`, `with`: parentheses follow, then a statement.
    Control,
    New,
    /// A value follows: `return`, `typeof`, `case`, …
    BeforeOperand,
    /// A statement or a block follows: `else`, `do`, `try`, `finally`, `function`, `class`.
    BeforeStatement,
}

impl Word {
    pub fn of(name: &[u8]) -> Word {
        match name {
            b"location" => Word::Location,
            b"top" => Word::Top,
            b"window" | b"self" | b"parent" | b"globalThis" => Word::Window,
            b"postMessage" => Word::PostMessage,
            b"import" | b"export" => Word::Imports,
            b"from" => Word::From,
            b"var" | b"let" | b"const" => Word::Declares,
            b"get" | b"set" | b"async" | b"static" => Word::Accessor,
            b"if" | b"while" | b"for" | b"with" => Word::Control,
            b"new" => Word::New,
            b"return" | b"typeof" | b"instanceof" | b"in" | b"of" | b"delete" | b"void" | b"throw" | b"case"
            | b"yield" | b"await" | b"default" | b"extends" => Word::BeforeOperand,
            b"else" | b"do" | b"try" | b"finally" | b"function" | b"class" => Word::BeforeStatement,
            _ => Word::Name,
        }
    }

    /// After a dot, words have no other meaning than their own.
    pub fn of_member(name: &[u8]) -> Word {
        match name {
            b"location" => Word::Location,
            b"postMessage" => Word::PostMessage,
            _ => Word::Name,
        }
    }
}

/// May this byte be part of a name?
#[inline]
pub fn is_part(byte: u8) -> bool {
    PART[byte as usize]
}

const PART: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = matches!(byte as u8, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'$' | 0x80..);
        byte += 1;
    }
    table
};
