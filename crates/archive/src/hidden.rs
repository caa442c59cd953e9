//! Positions that removals have hidden: no view answers with them.

use crate::Position;
use std::collections::HashSet;
use std::sync::{Arc, PoisonError, RwLock};

/// The hidden positions of an archive, shared by its views. Folded from removal records when the archive opens.
#[derive(Default)]
pub struct Hidden(RwLock<Arc<HashSet<Position>>>);

impl Hidden {
    /// Hides more positions; answers that begin after this do not contain them.
    pub fn hide(&self, positions: impl IntoIterator<Item = Position>) {
        let mut hidden = self.0.write().unwrap_or_else(PoisonError::into_inner);
        // Copies only if an answer is under way with the set as it was.
        Arc::make_mut(&mut hidden).extend(positions);
    }

    /// Whether a position is hidden.
    pub fn contains(&self, position: &Position) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).contains(position)
    }

    /// The set as it is now.
    pub fn now(&self) -> Arc<HashSet<Position>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
