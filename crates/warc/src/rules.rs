//! Placeholder
use crate::finding::Findings;
use crate::head::Head;
pub(crate) fn check_head(_head: &Head, _offset: u64, _number: u64, _findings: &mut Findings) {}
