//! What Prometheus reads at `/metrics`.

use std::fmt::Write;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// What a request was about. The name stands in metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Route {
    /// An archived page or a part of one.
    Replay,
    /// The index.
    Cdx,
    /// TimeGates and TimeMaps.
    Memento,
    /// The API.
    Api,
    /// Pages for people.
    Page,
    /// Health, metrics, assets.
    Service,
    /// A page through the proxy.
    Proxy,
    /// Turned away before anything was looked at.
    Refused,
}

const ROUTES: [(Route, &str); 8] = [
    (Route::Replay, "replay"),
    (Route::Cdx, "cdx"),
    (Route::Memento, "memento"),
    (Route::Api, "api"),
    (Route::Page, "page"),
    (Route::Service, "service"),
    (Route::Proxy, "proxy"),
    (Route::Refused, "refused"),
];

/// Upper ends of the classes of durations, in seconds.
const BUCKETS: [(f64, &str); 10] = [
    (0.001, "0.001"),
    (0.0025, "0.0025"),
    (0.005, "0.005"),
    (0.01, "0.01"),
    (0.025, "0.025"),
    (0.05, "0.05"),
    (0.1, "0.1"),
    (0.5, "0.5"),
    (2.5, "2.5"),
    (10.0, "10"),
];

#[derive(Default)]
struct Counts {
    by_class: [AtomicU64; 6],
    bytes: AtomicU64,
    micros: AtomicU64,
    buckets: [AtomicU64; BUCKETS.len()],
    count: AtomicU64,
}

/// Counters since the portal began.
#[derive(Default)]
pub struct Metrics {
    routes: [Counts; ROUTES.len()],
    in_flight: AtomicI64,
    connections: AtomicI64,
    troubles: AtomicU64,
}

impl Metrics {
    /// One more request is being answered, or one fewer.
    pub fn in_flight(&self, change: i64) {
        self.in_flight.fetch_add(change, Relaxed);
    }

    /// One more connection is open, or one fewer.
    pub fn connections(&self, change: i64) {
        self.connections.fetch_add(change, Relaxed);
    }

    /// A record could not be read, or an answer broke off.
    pub fn trouble(&self) {
        self.troubles.fetch_add(1, Relaxed);
    }

    /// A request was answered.
    pub fn answered(&self, route: Route, status: u16, bytes: u64, took: Duration) {
        let counts = &self.routes[route as usize];
        counts.by_class[usize::from(status / 100).min(5)].fetch_add(1, Relaxed);
        counts.bytes.fetch_add(bytes, Relaxed);
        counts.micros.fetch_add(took.as_micros() as u64, Relaxed);
        counts.count.fetch_add(1, Relaxed);
        let seconds = took.as_secs_f64();
        if let Some(bucket) = BUCKETS.iter().position(|(end, _)| seconds <= *end) {
            counts.buckets[bucket].fetch_add(1, Relaxed);
        }
    }

    /// The text of `/metrics`; `archive` are facts about the archive, by name.
    pub fn text(&self, archive: &[(&str, &str, u64)]) -> String {
        let mut out = String::with_capacity(8 << 10);
        let _ = self.write(&mut out, archive);
        out
    }

    fn write(&self, out: &mut String, archive: &[(&str, &str, u64)]) -> std::fmt::Result {
        writeln!(out, "# HELP skep_portal_requests_total Requests answered, by route and class of status.")?;
        writeln!(out, "# TYPE skep_portal_requests_total counter")?;
        for (route, name) in ROUTES {
            for (class, count) in self.routes[route as usize].by_class.iter().enumerate() {
                let count = count.load(Relaxed);
                if count > 0 {
                    writeln!(out, "skep_portal_requests_total{{route=\"{name}\",status=\"{class}xx\"}} {count}")?;
                }
            }
        }
        writeln!(out, "# HELP skep_portal_response_bytes_total Bytes of bodies sent.")?;
        writeln!(out, "# TYPE skep_portal_response_bytes_total counter")?;
        for (route, name) in ROUTES {
            let bytes = self.routes[route as usize].bytes.load(Relaxed);
            writeln!(out, "skep_portal_response_bytes_total{{route=\"{name}\"}} {bytes}")?;
        }
        writeln!(out, "# HELP skep_portal_request_seconds Time from the request to the last byte of its answer.")?;
        writeln!(out, "# TYPE skep_portal_request_seconds histogram")?;
        for (route, name) in ROUTES {
            let counts = &self.routes[route as usize];
            let (mut sum, count) = (0, counts.count.load(Relaxed));
            if count == 0 {
                continue;
            }
            for ((_, end), bucket) in BUCKETS.iter().zip(&counts.buckets) {
                sum += bucket.load(Relaxed);
                writeln!(out, "skep_portal_request_seconds_bucket{{route=\"{name}\",le=\"{end}\"}} {sum}")?;
            }
            writeln!(out, "skep_portal_request_seconds_bucket{{route=\"{name}\",le=\"+Inf\"}} {count}")?;
            let seconds = counts.micros.load(Relaxed) as f64 / 1e6;
            writeln!(out, "skep_portal_request_seconds_sum{{route=\"{name}\"}} {seconds}")?;
            writeln!(out, "skep_portal_request_seconds_count{{route=\"{name}\"}} {count}")?;
        }
        let gauges = [
            ("skep_portal_requests_in_flight", "Requests being answered.", self.in_flight.load(Relaxed).max(0) as u64),
            ("skep_portal_connections", "Open connections.", self.connections.load(Relaxed).max(0) as u64),
        ];
        for (name, help, value) in gauges.into_iter().chain(archive.iter().copied()) {
            writeln!(out, "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}")?;
        }
        let (name, troubles) = ("skep_portal_troubles_total", self.troubles.load(Relaxed));
        writeln!(out, "# HELP {name} Records that could not be read, answers that broke off.")?;
        writeln!(out, "# TYPE {name} counter\n{name} {troubles}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_add_up() {
        let metrics = Metrics::default();
        metrics.answered(Route::Replay, 200, 100, Duration::from_millis(3));
        metrics.answered(Route::Replay, 404, 10, Duration::from_secs(60));
        metrics.in_flight(1);
        let text = metrics.text(&[("skep_captures", "Captures.", 7)]);
        for line in [
            "skep_portal_requests_total{route=\"replay\",status=\"2xx\"} 1",
            "skep_portal_requests_total{route=\"replay\",status=\"4xx\"} 1",
            "skep_portal_response_bytes_total{route=\"replay\"} 110",
            "skep_portal_request_seconds_bucket{route=\"replay\",le=\"0.0025\"} 0",
            "skep_portal_request_seconds_bucket{route=\"replay\",le=\"0.005\"} 1",
            "skep_portal_request_seconds_bucket{route=\"replay\",le=\"10\"} 1",
            "skep_portal_request_seconds_bucket{route=\"replay\",le=\"+Inf\"} 2",
            "skep_portal_requests_in_flight 1",
            "skep_captures 7",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }
}
