//! Files as the other programs write them.

use super::*;

const CHANGEDETECTION: &str = r##"{
 "version_tag": "0.50", "settings": { "application": { "tags": { "t-1": { "title": "News" } } } },
 "watching": {
  "1": { "url": "https://example.org/", "title": "Example", "tags": ["t-1"], "include_filters": ["main .story", "xpath://div[@id='a']"],
         "subtractive_selectors": [".ad"], "ignore_text": ["Visitor 12.", "/seen \\d+ times/i"],
         "filter_text_added": true, "filter_text_removed": true, "filter_text_replaced": true, "method": "GET", "fetch_backend": "system",
         "trigger_text": [], "conditions": {}, "proxy": null, "processor": "text_json_diff", "sort_text_alphabetically": false,
         "time_between_check": { "weeks": null, "days": null, "hours": 2, "minutes": 30, "seconds": null }, "paused": false },
  "2": { "url": "https://example.com/x", "tag": "shop, prices", "include_filters": ["json:$.price", "//div[2]"],
         "browser_steps": [{ "operation": "Click" }], "headers": {}, "processor": "text_json_diff", "paused": true },
  "3": { "title": "no URL" }
 }
}"##;

const URLWATCH: &str = "\
name: Example
url: https://example.org/
filter:
  - css: main
  - xpath: //div[@id=\"a\"]
  - element-by-id: news
  - html2text
  - grepi: 'Visitor \\d+'
---
url: https://example.com/x
tags: [shop]
filter:
  - css:
      selector: .price
      exclude: .ad
  - grep: only this
  - shellpipe: sort
timeout: 5
---
name: no URL
command: date
---
navigate: https://example.net/
filter: css:main,html2text
";

#[test]
fn what_changedetection_has_is_taken_over_or_said() {
    let watches = changedetection::read(CHANGEDETECTION).unwrap();
    assert_eq!(watches.len(), 2);
    let first = &watches[0];
    assert_eq!((first.url.as_str(), first.tags.as_slice()), ("https://example.org/", ["News".to_owned()].as_slice()));
    assert_eq!(first.keep, ["main .story", "div#a"]);
    assert_eq!((first.ignore.as_slice(), first.every_ms), ([".ad".to_owned()].as_slice(), Some(9_000_000)));
    assert_eq!(first.ignore_text, ["(?i).*(?:Visitor 12\\.).*", "(?i).*(?:seen \\d+ times).*"]);
    assert!(first.left.is_empty(), "{:?}", first.left);
    let second = &watches[1];
    assert_eq!(second.tags, ["shop", "prices"]);
    assert_eq!(second.left.len(), 4, "JSON, a path, steps in a browser, paused: {:?}", second.left);
    assert_eq!(changedetection::read("{\"url\":\"https://a.test/\"}").unwrap().len(), 1);
    assert!(changedetection::read("{").is_err() && changedetection::read("[1]").unwrap().is_empty());
}

#[test]
fn what_holds_for_groups_or_for_all_watches_of_changedetection_is_taken_over() {
    let watches = changedetection::read(
        r##"{"settings": {
            "requests": { "time_between_check": { "hours": 3 } },
            "application": { "global_ignore_text": ["Loaded in"], "global_subtractive_selectors": ["nav"],
                "tags": { "t": { "title": "Shop", "include_filters": [".price"], "subtractive_selectors": [".ad"], "ignore_text": ["/^#\\d+/"] } } } },
          "watching": {
            "1": { "url": "https://a.test/", "tags": ["t"], "ignore_text": ["x"], "time_between_check": { "minutes": 5 }, "time_between_check_use_default": true },
            "2": { "url": "https://b.test/", "time_between_check": { "minutes": 5 }, "filter_text_removed": false, "fetch_backend": "html_webdriver", "method": "POST" }
          }}"##,
    )
    .unwrap();
    assert_eq!(
        (watches[0].keep.as_slice(), watches[0].ignore.as_slice()),
        (&[".price".to_owned()][..], &[".ad".to_owned(), "nav".to_owned()][..])
    );
    assert_eq!(watches[0].ignore_text, ["(?i).*(?:x).*", ".*(?:^#\\d+).*", "(?i).*(?:Loaded in).*"]);
    assert_eq!((watches[0].every_ms, watches[1].every_ms), (Some(10_800_000), Some(300_000)));
    assert!(watches[0].left.is_empty(), "{:?}", watches[0].left);
    assert_eq!((watches[1].ignore.len(), watches[1].left.len()), (1, 3), "{:?}", watches[1].left);
}

#[test]
fn what_urlwatch_has_is_taken_over_or_said() {
    let watches = urlwatch::read(URLWATCH).unwrap();
    assert_eq!(watches.len(), 4);
    assert_eq!(watches[0].keep, ["main", "div#a", "#news"]);
    assert_eq!(watches[0].ignore_text, [".*(?:Visitor \\d+).*"]);
    assert!(watches[0].left.is_empty(), "{:?}", watches[0].left);
    assert_eq!(
        (watches[1].keep.as_slice(), watches[1].ignore.as_slice()),
        ([".price".to_owned()].as_slice(), [".ad".to_owned()].as_slice())
    );
    assert_eq!(watches[1].left.len(), 3, "{:?}", watches[1].left);
    assert_eq!(
        (watches[2].url.as_str(), watches[2].left.as_slice()),
        ("", &["`command` has no counterpart here".to_owned()][..])
    );
    assert_eq!(
        (watches[3].url.as_str(), watches[3].keep.as_slice()),
        ("https://example.net/", ["main".to_owned()].as_slice())
    );
    assert_eq!(urlwatch::read("url: https://a.test/\nenabled: false\n").unwrap()[0].left.len(), 1);
    assert!(urlwatch::read("a: [").is_err());
    let bomb = "a: &a [x, x]\nb: &b [*a, *a]\nurl: *b\n";
    assert!(urlwatch::read(bomb).unwrap_err().contains("aliases"));
}
