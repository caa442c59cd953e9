//! What the URL alone shows. Only what no real site does: most rows of a real list must pass, all of it in fact.

use skep_url::Url;

use super::Trap;
use crate::limits;

/// The rule that a URL breaks by itself, if any.
pub fn url_rule(url: &Url) -> Option<Trap> {
    let target = url.request_target();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    if repeats(&segments) {
        return Some(Trap::RepeatingSegments);
    }
    if segments.len() > limits::SEGMENTS_MAX {
        return Some(Trap::TooDeep);
    }
    // A percent sign escaped three times over: each visit to a log-in page wraps the address once more.
    if query.contains("%252525") {
        return Some(Trap::NestedEscapes);
    }
    None
}

/// Does a sequence of one to four segments follow itself more often than it may? Numbers and single letters repeat in real
/// paths (`/0/0/0/`, `/p/h/o/t/o/`), words do not.
fn repeats(segments: &[&str]) -> bool {
    for width in 1..=limits::REPEAT_WIDTH_MAX {
        let mut equal = 0;
        for at in width..segments.len() {
            equal = if segments[at] == segments[at - width] { equal + 1 } else { 0 };
            // `equal` segments repeat what stood `width` before them: the unit stands there 1 + equal / width times.
            let times = 1 + equal / width;
            let unit = &segments[at + 1 - width..=at];
            let telling = unit.iter().any(|segment| segment.len() > 1 && !segment.bytes().all(|b| b.is_ascii_digit()));
            let most = match (telling, width) {
                (false, _) => limits::REPEATS_OF_NUMBERS_MAX,
                (true, 1) => limits::REPEATS_OF_ONE_MAX,
                (true, _) => limits::REPEATS_OF_MANY_MAX,
            };
            if times > most {
                return true;
            }
        }
    }
    // Or in changing company: `/forum/images/forum/thread/forum/images/…`.
    segments.len() > limits::REPEATS_ANYWHERE_MAX
        && segments.iter().any(|segment| {
            segment.len() > 1
                && !segment.bytes().all(|b| b.is_ascii_digit())
                && segments.iter().filter(|other| *other == segment).count() > limits::REPEATS_ANYWHERE_MAX
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(path: &str) -> Option<Trap> {
        url_rule(&Url::parse(&format!("https://a.example{path}")).expect(path))
    }

    #[test]
    fn paths_that_repeat_are_refused() {
        for path in
            ["/a1/a1/a1/a1", "/ab/cd/ab/cd/ab/cd", "/x/ab/cd/ef/ab/cd/ef/ab/cd/ef/y", "/docs/docs/docs/docs/x.html"]
        {
            assert_eq!(rule(path), Some(Trap::RepeatingSegments), "{path}");
        }
        assert_eq!(rule("/forum/a1/forum/b1/forum/c1/forum/d1/forum/e1/forum/x"), Some(Trap::RepeatingSegments));
        assert_eq!(rule("/1/1/1/1/1/1/1"), Some(Trap::RepeatingSegments));
    }

    #[test]
    fn paths_that_only_look_alike_are_not() {
        for path in [
            "/",
            "/index/index",
            "/crypto/crypto/crypto/",
            "/2003/06/06/story/",
            "/101264/0/0/0/1/section",
            "/p/h/o/t/o/s/h/o/p/",
            "/ab/cd/ab/cd",
            "/std/collections/hash_map/struct.HashMap.html",
            "/portal/page/portal/UI/page",
            "/a?x=/b/b/b/b/b/b",
        ] {
            assert_eq!(rule(path), None, "{path}");
        }
    }

    #[test]
    fn depth_and_nesting_have_an_end() {
        let deep = |n: usize| (0..n).map(|i| format!("/s{i}")).collect::<String>();
        assert_eq!(rule(&deep(32)), None);
        assert_eq!(rule(&deep(33)), Some(Trap::TooDeep));
        assert_eq!(rule("/login?to=%252Flogin%253Fto%253D%25252F"), None);
        assert_eq!(rule("/login?to=%2Flogin%3Fto%3D%252525252Flogin"), Some(Trap::NestedEscapes));
    }
}
