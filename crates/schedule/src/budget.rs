//! How much a crawl, and each site in it, may take.
//!
//! A URL over budget is not dead: the verdict is kept with it, and a larger budget lets it go on. Pages and bytes are counted
//! when they are there, so that a budget is passed by what is out at that moment and by no more.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::id::SiteId;

/// The most that may be taken; nothing where there is no bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Pages fetched.
    pub pages: Option<u64>,
    /// Bytes received.
    pub bytes: Option<u64>,
    /// Milliseconds of crawling, all sessions of the crawl together.
    pub time_ms: Option<u64>,
    /// Links between a seed and a page.
    pub depth: Option<u16>,
}

/// Which budget is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Spent {
    /// The crawl's pages.
    Pages,
    /// The crawl's bytes.
    Bytes,
    /// The crawl's time.
    Time,
    /// Too far from any seed.
    Depth,
    /// The site's pages.
    SitePages,
    /// The site's bytes.
    SiteBytes,
    /// The site's time.
    SiteTime,
    /// Too far from any seed, for this site.
    SiteDepth,
}

impl Spent {
    /// All of them.
    pub const ALL: [Spent; 8] = [
        Spent::Pages,
        Spent::Bytes,
        Spent::Time,
        Spent::Depth,
        Spent::SitePages,
        Spent::SiteBytes,
        Spent::SiteTime,
        Spent::SiteDepth,
    ];

    /// The short name under which it is stored and counted.
    pub fn id(self) -> &'static str {
        match self {
            Spent::Pages => "budget-pages",
            Spent::Bytes => "budget-bytes",
            Spent::Time => "budget-time",
            Spent::Depth => "budget-depth",
            Spent::SitePages => "site-budget-pages",
            Spent::SiteBytes => "site-budget-bytes",
            Spent::SiteTime => "site-budget-time",
            Spent::SiteDepth => "site-budget-depth",
        }
    }

    /// The verdict of that name.
    pub fn from_id(id: &str) -> Option<Spent> {
        Spent::ALL.into_iter().find(|spent| spent.id() == id)
    }

    /// For a person who asks why.
    pub fn text(self) -> &'static str {
        match self {
            Spent::Pages => "the crawl has all the pages it may have (--pages)",
            Spent::Bytes => "the crawl has all the bytes it may have (--bytes)",
            Spent::Time => "the crawl has had all its time (--time)",
            Spent::Depth => "it is more links away from the seeds than the crawl may go (--depth)",
            Spent::SitePages => "the crawl has all the pages of this site that it may have",
            Spent::SiteBytes => "the crawl has all the bytes of this site that it may have",
            Spent::SiteTime => "the crawl has spent all the time on this site that it may",
            Spent::SiteDepth => "it is more links away from the seeds than the crawl may go on this site",
        }
    }

    /// Does it end the whole crawl?
    pub fn ends_crawl(self) -> bool {
        matches!(self, Spent::Pages | Spent::Bytes | Spent::Time)
    }
}

/// What has been taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken {
    /// Pages fetched.
    pub pages: u64,
    /// Bytes received.
    pub bytes: u64,
    /// Milliseconds: of the crawl since it began, of a site its requests.
    pub time_ms: u64,
}

impl Taken {
    fn add(&mut self, pages: u64, bytes: u64, time_ms: u64) {
        self.pages = self.pages.saturating_add(pages);
        self.bytes = self.bytes.saturating_add(bytes);
        self.time_ms = self.time_ms.saturating_add(time_ms);
    }
}

/// The books of one crawl.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budgets {
    crawl: Budget,
    each_site: Budget,
    /// Sites with a budget of their own, by an operator's word.
    of_site: BTreeMap<SiteId, Budget>,
    taken: Taken,
    /// Kept only for sites that have a bound to keep.
    taken_of_site: BTreeMap<SiteId, Taken>,
}

impl Budgets {
    /// For a crawl, and for each of its sites.
    pub fn new(crawl: Budget, each_site: Budget) -> Budgets {
        Budgets { crawl, each_site, ..Budgets::default() }
    }

    /// Other bounds than before; what has been taken stays taken.
    pub fn set(&mut self, crawl: Budget, each_site: Budget) {
        (self.crawl, self.each_site) = (crawl, each_site);
    }

    /// A site's own budget; nothing to treat it like the others again.
    pub fn set_site(&mut self, site: SiteId, budget: Option<Budget>) {
        match budget {
            Some(budget) => self.of_site.insert(site, budget),
            None => self.of_site.remove(&site),
        };
    }

    /// May a URL at this depth be taken in?
    pub fn admit(&self, site: SiteId, depth: u16) -> Result<(), Spent> {
        let over = |bound: Option<u16>| bound.is_some_and(|bound| depth > bound);
        if over(self.crawl.depth) {
            return Err(Spent::Depth);
        }
        if over(self.budget_of(site).depth) {
            return Err(Spent::SiteDepth);
        }
        Ok(())
    }

    /// May something be fetched now? `out`: URLs that are out already, of the crawl and of the site, so that a bound is not
    /// passed by what is on its way.
    pub fn may_fetch(&self, site: SiteId, out: u64, out_of_site: u64) -> Result<(), Spent> {
        self.crawl_may_go_on(out)?;
        let budget = self.budget_of(site);
        let taken = self.taken_of_site.get(&site).copied().unwrap_or_default();
        match spent(&budget, &taken, out_of_site) {
            None => Ok(()),
            Some(Spent::Pages) => Err(Spent::SitePages),
            Some(Spent::Bytes) => Err(Spent::SiteBytes),
            Some(_) => Err(Spent::SiteTime),
        }
    }

    /// May anything be fetched at all?
    pub fn crawl_may_go_on(&self, out: u64) -> Result<(), Spent> {
        spent(&self.crawl, &self.taken, out).map_or(Ok(()), Err)
    }

    /// How many more pages of the site may go out now.
    pub fn pages_left(&self, site: SiteId, out: u64, out_of_site: u64) -> u64 {
        let left = |budget: &Budget, taken: u64, out: u64| {
            budget.pages.map_or(u64::MAX, |pages| pages.saturating_sub(taken).saturating_sub(out))
        };
        let of_site = self.taken_of_site.get(&site).map_or(0, |taken| taken.pages);
        left(&self.crawl, self.taken.pages, out).min(left(&self.budget_of(site), of_site, out_of_site))
    }

    /// A page came.
    pub fn took(&mut self, site: SiteId, bytes: u64, time_ms: u64) {
        // The time of the crawl is not the sum of its requests: see `passed`.
        self.taken.add(1, bytes, 0);
        if self.budget_of(site) != Budget::default() {
            self.taken_of_site.entry(site).or_default().add(1, bytes, time_ms);
        }
    }

    /// The crawl ran for so long.
    pub fn passed(&mut self, ms: u64) {
        self.taken.add(0, 0, ms);
    }

    /// What the crawl has taken.
    pub fn taken(&self) -> Taken {
        self.taken
    }

    /// A new pass begins with nothing taken.
    pub fn begin_pass(&mut self) {
        self.taken = Taken::default();
        self.taken_of_site.clear();
    }

    fn budget_of(&self, site: SiteId) -> Budget {
        self.of_site.get(&site).copied().unwrap_or(self.each_site)
    }
}

fn spent(budget: &Budget, taken: &Taken, out: u64) -> Option<Spent> {
    let full = |bound: Option<u64>, taken: u64| bound.is_some_and(|bound| taken >= bound);
    if full(budget.pages, taken.pages.saturating_add(out)) {
        return Some(Spent::Pages);
    }
    if full(budget.bytes, taken.bytes) {
        return Some(Spent::Bytes);
    }
    full(budget.time_ms, taken.time_ms).then_some(Spent::Time)
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: SiteId = SiteId(1);
    const B: SiteId = SiteId(2);

    #[test]
    fn without_bounds_there_is_no_end_and_nothing_to_remember() {
        let mut budgets = Budgets::default();
        (0..1_000).for_each(|n| budgets.took(SiteId(n), u64::MAX, u64::MAX));
        assert_eq!(budgets.may_fetch(A, u64::MAX, u64::MAX), Ok(()));
        assert_eq!(budgets.admit(A, u16::MAX), Ok(()));
        assert_eq!(budgets.pages_left(A, 9, 9), u64::MAX);
        assert!(budgets.taken_of_site.is_empty());
    }

    #[test]
    fn pages_that_are_out_count() {
        let mut budgets = Budgets::new(Budget { pages: Some(3), ..Budget::default() }, Budget::default());
        budgets.took(A, 1, 1);
        assert_eq!(budgets.may_fetch(B, 1, 0), Ok(()));
        assert_eq!(budgets.pages_left(B, 1, 0), 1);
        assert_eq!(budgets.may_fetch(B, 2, 0), Err(Spent::Pages));
        assert_eq!(budgets.pages_left(B, 2, 0), 0);
    }

    #[test]
    fn bytes_and_time_end_a_crawl() {
        let budget = Budget { bytes: Some(100), time_ms: Some(5_000), ..Budget::default() };
        let mut budgets = Budgets::new(budget, Budget::default());
        budgets.took(A, 99, 9_999);
        budgets.passed(4_999);
        assert_eq!(budgets.crawl_may_go_on(50), Ok(()));
        budgets.passed(1);
        assert_eq!(budgets.crawl_may_go_on(0), Err(Spent::Time));
        budgets.took(A, 1, 0);
        assert_eq!(budgets.crawl_may_go_on(0), Err(Spent::Bytes));
        budgets.set(Budget::default(), Budget::default());
        assert_eq!(budgets.crawl_may_go_on(0), Ok(()), "a larger budget lets it go on");
        assert_eq!(budgets.taken().bytes, 100);
    }

    #[test]
    fn a_site_has_its_own_and_leaves_the_others_theirs() {
        let each = Budget { pages: Some(2), bytes: Some(1_000), time_ms: Some(1_000), depth: Some(4) };
        let mut budgets = Budgets::new(Budget { depth: Some(9), ..Budget::default() }, each);
        budgets.took(A, 10, 10);
        budgets.took(A, 10, 10);
        assert_eq!(budgets.may_fetch(A, 0, 0), Err(Spent::SitePages));
        assert_eq!(budgets.may_fetch(B, 0, 0), Ok(()));
        budgets.took(B, 1_000, 10);
        assert_eq!(budgets.may_fetch(B, 0, 0), Err(Spent::SiteBytes));
        budgets.took(SiteId(3), 1, 1_000);
        assert_eq!(budgets.may_fetch(SiteId(3), 0, 0), Err(Spent::SiteTime));
        assert_eq!(budgets.admit(A, 4), Ok(()));
        assert_eq!(budgets.admit(A, 5), Err(Spent::SiteDepth));
        assert_eq!(budgets.admit(A, 10), Err(Spent::Depth));
        budgets.set_site(A, Some(Budget { pages: Some(5), ..Budget::default() }));
        assert_eq!(budgets.may_fetch(A, 0, 2), Ok(()));
        assert_eq!(budgets.pages_left(A, 0, 2), 1);
        assert_eq!(budgets.may_fetch(A, 0, 3), Err(Spent::SitePages));
        budgets.begin_pass();
        assert_eq!(budgets.may_fetch(B, 0, 0), Ok(()));
    }

    #[test]
    fn names_find_their_verdicts() {
        for spent in Spent::ALL {
            assert_eq!(Spent::from_id(spent.id()), Some(spent));
            assert!(!spent.text().is_empty());
        }
        assert!(Spent::Time.ends_crawl() && !Spent::SiteTime.ends_crawl() && !Spent::Depth.ends_crawl());
    }
}
