//! Figures for people: a table whose columns line up, with ratios.

/// Rows of text under a heading; the first column to the left, the others to the right.
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these column heads.
    pub fn new(heads: &[&str]) -> Table {
        Table { rows: vec![heads.iter().map(|head| (*head).to_owned()).collect()] }
    }

    /// Adds a row; missing cells stay empty.
    pub fn row(&mut self, cells: &[String]) {
        let mut cells = cells.to_vec();
        cells.resize(self.rows[0].len().max(cells.len()), String::new());
        self.rows.push(cells);
    }

    /// The table as text, ready to print.
    pub fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for (index, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let gap = " ".repeat(widths[column] - cell.chars().count());
                match column {
                    0 => line.push_str(&format!("{cell}{gap}")),
                    _ => line.push_str(&format!("  {gap}{cell}")),
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
            if index == 0 {
                text.push_str(&"-".repeat(widths.iter().sum::<usize>() + 2 * columns.saturating_sub(1)));
                text.push('\n');
            }
        }
        text
    }
}

/// How often one figure holds the other: `2.31×`.
pub fn ratio(ours: f64, theirs: f64) -> String {
    if theirs > 0.0 { format!("{:.2}×", ours / theirs) } else { "–".into() }
}

/// Whether a figure reached what is asked of it.
pub fn verdict(reached: f64, wanted: f64) -> String {
    format!("{} (asked {wanted}×)", if reached >= wanted { "reached" } else { "SHORT" })
}

/// A count with its thousands apart: `1 234 567`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut spaced = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            spaced.push(' ');
        }
        spaced.push(digit);
    }
    spaced
}

/// Bytes in megabytes of a million: `512.3 MB`.
pub fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&["who", "records/s"]);
        table.row(&["skep".into(), count(1_234_567)]);
        table.row(&["another".into(), count(9)]);
        assert_eq!(table.render(), "who      records/s\n------------------\nskep     1 234 567\nanother          9\n");
    }

    #[test]
    fn figures_read_well() {
        assert_eq!((count(0), count(999), count(1000)), ("0".into(), "999".into(), "1 000".into()));
        assert_eq!(ratio(3.0, 2.0), "1.50×");
        assert_eq!(ratio(3.0, 0.0), "–");
        assert_eq!(megabytes(1_500_000), "1.5 MB");
    }
}
