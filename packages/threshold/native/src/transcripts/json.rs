//! Writes JSON in the format of this repository, without a dependency on a JSON library.

#[derive(Clone)]
pub enum Json {
    Number(u64),
    Text(String),
    Numbers(Vec<u64>),
    List(Vec<Json>),
    Map(Vec<(String, Json)>),
}

impl Json {
    pub fn text(text: &str) -> Self {
        Self::Text(text.into())
    }

    pub fn map(fields: Vec<(&str, Json)>) -> Self {
        let fields = fields.into_iter();
        Self::Map(fields.map(|(name, value)| (name.into(), value)).collect())
    }

    fn write(&self, indent: usize, out: &mut String) {
        let margin = "  ".repeat(indent + 1);
        let end = "  ".repeat(indent);
        match self {
            Self::Number(number) => out.push_str(&number.to_string()),
            // Only names, digits and plain sentences occur, so nothing needs an escape.
            Self::Text(text) => {
                assert!(text
                    .chars()
                    .all(|c| c != '"' && c != '\\' && !c.is_control()));
                out.push_str(&format!("\"{text}\""));
            }
            Self::Numbers(numbers) => {
                let all: Vec<String> = numbers.iter().map(u64::to_string).collect();
                out.push_str(&format!("[{}]", all.join(", ")));
            }
            Self::List(items) => {
                out.push_str("[\n");
                for (at, item) in items.iter().enumerate() {
                    out.push_str(&margin);
                    item.write(indent + 1, out);
                    out.push_str(if at + 1 < items.len() { ",\n" } else { "\n" });
                }
                out.push_str(&format!("{end}]"));
            }
            Self::Map(fields) => {
                out.push_str("{\n");
                for (at, (name, value)) in fields.iter().enumerate() {
                    out.push_str(&format!("{margin}\"{name}\": "));
                    value.write(indent + 1, out);
                    out.push_str(if at + 1 < fields.len() { ",\n" } else { "\n" });
                }
                out.push_str(&format!("{end}}}"));
            }
        }
    }

    pub fn print(&self) -> String {
        let mut out = String::new();
        self.write(0, &mut out);
        out.push('\n');
        out
    }
}
