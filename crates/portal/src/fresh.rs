//! What the watches of the archive know of their pages. Whoever runs them is asked, at most so often, however many people look.

use crate::limits::FRESH_KEPT_MS;
use crate::trouble::Trouble;
use axum::http::StatusCode;
use std::sync::{Arc, Mutex, PoisonError};

/// How one watch stands.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Watched {
    /// What it is called.
    pub name: String,
    /// What it is filed under.
    pub tags: Vec<String>,
    /// By what the next look is chosen.
    pub policy: String,
    /// How much is spent on looking, in words.
    pub budget: String,
    /// Where it begins, or some of it.
    pub seeds: Vec<String>,
    /// Pages that are looked at again.
    pub pages: u64,
    /// Of these, as many were reckoned with.
    pub sampled: u64,
    /// The share of them that is believed to be up to date, from 0 to 1.
    pub fresh: f64,
    /// When that page was last looked at which was not for longest, in milliseconds since 1970.
    pub oldest_check_ms: Option<i64>,
    /// Pages that are not due.
    pub waiting: u64,
    /// Pages that are due and wait for the budget, or for their host.
    pub overdue: u64,
    /// Bundles that these make.
    pub overdue_bundles: u64,
    /// Pages that are being fetched.
    pub out: u64,
}

/// Tells how the watches stand, or why that cannot be told.
pub type Tells = Arc<dyn Fn() -> Result<Vec<Watched>, String> + Send + Sync>;

/// Who tells, and what was told last.
pub struct Fresh {
    tells: Option<Tells>,
    last: Mutex<Option<(i64, Arc<[Watched]>)>>,
}

impl Fresh {
    /// For a portal beside these watches.
    pub fn new(tells: Option<Tells>) -> Fresh {
        Fresh { tells, last: Mutex::new(None) }
    }

    /// How the watches stand, or stood a moment ago.
    pub fn now(&self, now_ms: i64) -> Result<Arc<[Watched]>, Trouble> {
        let Some(tells) = &self.tells else { return Ok(Arc::default()) };
        // Whoever comes meanwhile waits, and gets the same.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at_ms, told)) = &*last
            && (0..FRESH_KEPT_MS).contains(&now_ms.saturating_sub(*at_ms))
        {
            return Ok(told.clone());
        }
        let told: Arc<[Watched]> = tells()
            .map_err(|why| Trouble {
                status: StatusCode::INTERNAL_SERVER_ERROR,
                told: "The watches could not be asked; the reason is in the log.".into(),
                log: Some(why),
            })?
            .into();
        *last = Some((now_ms, told.clone()));
        Ok(told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn watches_are_not_asked_more_often_than_need_be() {
        let asked = Arc::new(AtomicU64::new(0));
        let counter = asked.clone();
        let fresh = Fresh::new(Some(Arc::new(move || {
            let pages = counter.fetch_add(1, Ordering::Relaxed) + 1;
            if pages == 3 { Err("broken".into()) } else { Ok(vec![Watched { pages, ..Watched::default() }]) }
        })));
        assert_eq!(fresh.now(0).unwrap()[0].pages, 1);
        assert_eq!(fresh.now(FRESH_KEPT_MS - 1).unwrap()[0].pages, 1);
        assert_eq!(fresh.now(FRESH_KEPT_MS).unwrap()[0].pages, 2);
        // A clock that goes back is no reason to believe old news.
        assert_eq!(fresh.now(0).unwrap_err().log.as_deref(), Some("broken"));
        assert_eq!(asked.load(Ordering::Relaxed), 3);
        assert_eq!(Fresh::new(None).now(0).unwrap().len(), 0);
    }
}
