//! The values of a column, with its gaps.

use ::parquet::basic::Type as Physical;
use ::parquet::column::reader::{ColumnReader, get_typed_column_reader};
use ::parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use ::parquet::errors::Result;
use ::parquet::file::writer::SerializedColumnWriter;
use serde_json::Value;

/// Values that are not written yet or were read, and for each row whether it has one.
#[derive(Default)]
pub(super) struct Values {
    pub(super) there: Vec<i16>,
    pub(super) texts: Vec<ByteArray>,
    pub(super) wholes: Vec<i64>,
    reals: Vec<f64>,
    flags: Vec<bool>,
}

impl Values {
    /// A column that its file does not have.
    pub(super) fn absent(rows: usize) -> Values {
        Values {
            there: vec![0; rows],
            ..Values::default()
        }
    }

    pub(super) fn push(&mut self, kind: Physical, value: Option<Value>) {
        let there = match (kind, &value) {
            (_, None) => None,
            (Physical::BYTE_ARRAY, Some(text)) => text.as_str().map(|t| self.texts.push(t.into())),
            (Physical::BOOLEAN, Some(flag)) => flag.as_bool().map(|flag| self.flags.push(flag)),
            (Physical::INT64, Some(whole)) => whole.as_i64().map(|n| self.wholes.push(n)),
            (_, Some(real)) => real.as_f64().map(|real| self.reals.push(real)),
        };
        self.there.push(there.is_some().into());
    }

    /// Adds the wanted ones of another column's rows, which begin with row `from`.
    pub(super) fn extend(&mut self, other: &Values, from: usize, wanted: &[bool]) {
        let mut at = other.there[..from]
            .iter()
            .filter(|there| **there > 0)
            .count();
        for (there, wanted) in other.there[from..].iter().zip(wanted) {
            if *wanted {
                self.there.push(*there);
            }
            if *there == 0 {
                continue;
            }
            if *wanted {
                // One of them has values.
                self.texts.extend(other.texts.get(at).cloned());
                self.wholes.extend(other.wholes.get(at));
                self.reals.extend(other.reals.get(at));
                self.flags.extend(other.flags.get(at));
            }
            at += 1;
        }
    }

    pub(super) fn write(
        self,
        kind: Physical,
        mut column: SerializedColumnWriter<'_>,
    ) -> Result<()> {
        let there = Some(&self.there[..]);
        match kind {
            Physical::BYTE_ARRAY => {
                column
                    .typed::<ByteArrayType>()
                    .write_batch(&self.texts, there, None)?
            }
            Physical::BOOLEAN => {
                column
                    .typed::<BoolType>()
                    .write_batch(&self.flags, there, None)?
            }
            Physical::INT64 => {
                column
                    .typed::<Int64Type>()
                    .write_batch(&self.wholes, there, None)?
            }
            _ => column
                .typed::<DoubleType>()
                .write_batch(&self.reals, there, None)?,
        };
        column.close()
    }

    pub(super) fn read(kind: Physical, column: ColumnReader, rows: usize) -> Result<Values> {
        let mut own = Values::default();
        let there = &mut own.there;
        match kind {
            Physical::BYTE_ARRAY => read::<ByteArrayType>(column, rows, there, &mut own.texts)?,
            Physical::BOOLEAN => read::<BoolType>(column, rows, there, &mut own.flags)?,
            Physical::INT64 => read::<Int64Type>(column, rows, there, &mut own.wholes)?,
            _ => read::<DoubleType>(column, rows, there, &mut own.reals)?,
        }
        Ok(own)
    }

    /// The value of each row among these of the rows that have one.
    pub(super) fn by_row<'a, T>(&'a self, values: &'a [T]) -> impl Iterator<Item = Option<&'a T>> {
        let mut values = values.iter();
        let of_row = move |there: &i16| if *there > 0 { values.next() } else { None };
        self.there.iter().map(of_row)
    }
}

fn read<T: DataType>(
    column: ColumnReader,
    rows: usize,
    there: &mut Vec<i16>,
    values: &mut Vec<T::T>,
) -> Result<()> {
    let mut column = get_typed_column_reader::<T>(column);
    while there.len() < rows {
        let before = there.len();
        column.read_records(rows - before, Some(there), None, values)?;
        if there.len() == before {
            return Err(::parquet::errors::ParquetError::General(format!(
                "{before} of {rows} rows can be read"
            )));
        }
    }
    Ok(())
}
