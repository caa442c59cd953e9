//! A small plot as SVG: lines over a logarithmic axis of visits, each named at its end.

use std::fmt::Write as _;

/// One line of the plot.
pub struct Series {
    pub name: String,
    /// Visits per page and day, and freshness between 0 and 1; from few visits to many.
    pub points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 560.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 180.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 60.0;
/// Names at the right end are this far apart at least.
const LINE_HEIGHT: f64 = 17.0;
const COLOURS: [&str; 9] =
    ["#222222", "#888888", "#c0392b", "#e67e22", "#2471a3", "#17a589", "#8e44ad", "#7d6608", "#5d6d7e"];

/// The plot, whole.
pub fn draw(series: &[Series]) -> String {
    let all = || series.iter().flat_map(|series| series.points.iter());
    let (mut few, mut many, mut least) = (f64::INFINITY, f64::NEG_INFINITY, 1f64);
    for (visits, fresh) in all() {
        few = few.min(visits.ln());
        many = many.max(visits.ln());
        least = least.min(*fresh);
    }
    let least = (least * 10.0).floor() / 10.0;
    let x = |visits: f64| LEFT + (visits.ln() - few) / (many - few).max(1e-9) * (WIDTH - LEFT - RIGHT);
    let y = |fresh: f64| TOP + (1.0 - fresh) / (1.0 - least).max(1e-9) * (HEIGHT - TOP - BOTTOM);

    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    let mut put = |line: String| svg.push_str(&(line + "\n"));
    let mut step = least;
    while step < 1.0 + 1e-9 {
        let at = y(step);
        put(format!(
            "<line x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{:.1}\" y2=\"{at:.1}\" stroke=\"#dddddd\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{step:.1}</text>",
            WIDTH - RIGHT,
            LEFT - 8.0,
            at + 4.0
        ));
        step += 0.1;
    }
    if let Some(first) = series.first() {
        for (visits, _) in &first.points {
            put(format!(
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">1/{:.0}</text>",
                x(*visits),
                HEIGHT - BOTTOM + 20.0,
                1.0 / visits
            ));
        }
    }
    put(format!(
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">visits per page and day</text>",
        (LEFT + WIDTH - RIGHT) / 2.0,
        HEIGHT - 15.0
    ));
    put(format!("<text x=\"{LEFT}\" y=\"18\">freshness of the copies, pages weighted by importance</text>"));

    let mut ends: Vec<(f64, usize)> =
        series.iter().enumerate().filter_map(|(number, series)| Some((y(series.points.last()?.1), number))).collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut free = TOP;
    for (end, number) in ends {
        let (series, colour) = (&series[number], COLOURS[number % COLOURS.len()]);
        let points = series.points.iter().fold(String::new(), |mut points, (visits, fresh)| {
            let _never_fails = write!(points, "{:.1},{:.1} ", x(*visits), y(*fresh));
            points
        });
        put(format!("<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>", points.trim()));
        let at = end.max(free);
        free = at + LINE_HEIGHT;
        put(format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" fill=\"{colour}\">{}</text>",
            WIDTH - RIGHT + 10.0,
            at + 4.0,
            series.name
        ));
    }
    svg.push_str("</svg>\n");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_drawn_and_named_within_the_picture() {
        let series = |name: &str, fresh: f64| Series {
            name: name.into(),
            points: vec![(1.0 / 30.0, fresh), (0.5, (fresh + 0.2).min(1.0))],
        };
        let svg = draw(&[series("harmonic", 0.7), series("uniform", 0.69), series("oracle", 0.8)]);
        assert_eq!(svg.matches("<polyline").count(), 3);
        for name in ["harmonic", "uniform", "oracle", "1/30", "1/2"] {
            assert!(svg.contains(&format!(">{name}</text>")), "{name}");
        }
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
        assert!(!draw(&[]).contains("NaN"));
    }
}
