//! Real histories as hosts; they are read from the folder that `SKEP_CORPORA` names.

use std::path::PathBuf;

use skep_testweb::{History, Time};

fn corpora() -> Option<PathBuf> {
    let folder = std::env::var_os("SKEP_CORPORA").map(PathBuf::from);
    if folder.is_none() {
        eprintln!("corpus tests not run: SKEP_CORPORA is not set");
    }
    folder
}

#[test]
fn five_years_of_a_real_site() {
    let Some(corpora) = corpora() else { return };
    let bundle = corpora.join("sites/openbsd-www-1996-2001.bundle");
    assert!(bundle.is_file(), "{} is missing", bundle.display());
    let history = History::open(&bundle, None).unwrap();
    let commits = history.commits();
    assert!(commits.len() > 1_000, "{}", commits.len());
    assert!(commits.is_sorted());

    let moments = [commits[0], commits[commits.len() / 2], commits[commits.len() - 1]];
    let mut counts = Vec::new();
    for t in moments {
        let paths = history.paths(t);
        counts.push(paths.len());
        for path in paths.iter().step_by(37) {
            let answer = history.answer(path, t).unwrap();
            assert_eq!(answer.status, 200, "{path} at {t}");
            assert!(answer.last_modified.unwrap() <= t);
        }
    }
    assert!(counts[0] < counts[1] && counts[1] < counts[2], "{counts:?}");

    let home = |t: Time| history.answer("/", t).unwrap();
    assert_ne!(home(moments[1]).body, home(moments[2]).body);
    let since = home(moments[2]).last_modified.unwrap();
    assert_eq!(home(since).etag, home(moments[2]).etag);
    assert_ne!(home(since.plus_ms(-1)).etag, home(moments[2]).etag);
    assert_eq!(history.answer("/", moments[0].plus_ms(-1)).unwrap().status, 404);
}
