//! Every bound of the chores, with its unit.

/// Lines of code (blank lines and comments aside) above which a source file is no longer one thing.
pub const FILE_CODE_LINES_MAX: usize = 900;
