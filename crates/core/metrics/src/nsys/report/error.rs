//! Reasons why tables of Nsight Systems cannot be imported. The main type is [`NsysError`].

use super::MAX_ROWS;
use crate::text::TooLong;

/// Reasons why a text cannot be imported.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum NsysError {
    /// The text contains neither a table nor a message that explains why there is none.
    #[error(
        "this is not output of `nsys stats`: no line contains the columns of one of its reports; \
         export with `nsys stats --format csv --force-export=true FILE`"
    )]
    NoTable,
    /// The text contains only tables that are not supported.
    #[error(
        "line {line}: this table is about {what}, and not about activities of a GPU; export with \
         `nsys stats --format csv --report cuda_gpu_kern_sum --report cuda_gpu_trace FILE`"
    )]
    OtherTable {
        /// Line of the table's header.
        line: usize,
        /// Content of the table.
        what: String,
    },
    /// The tool looked for activities of a GPU and found none.
    #[error(
        "`{report}` ran and found nothing: the program did nothing on the GPU, or CUDA was not \
         traced; trace a program that launches kernels with `nsys profile --trace=cuda \
         --stats=true PROGRAM` (line {line}: the text has only tables about {what})"
    )]
    NothingTraced {
        /// Report of the tool that has no rows.
        report: String,
        /// Line of the header of another table.
        line: usize,
        /// Content of the other table.
        what: String,
    },
    /// No row of a table is complete.
    #[error(
        "line {line}: this row is cut off, and no other row of the table of line {header} is \
         complete; export again"
    )]
    OnlyCutRows {
        /// Line of the first row.
        line: usize,
        /// Line of the table's header.
        header: usize,
    },
    /// All rows of a table have more fields than the table has columns.
    #[error(
        "line {line}: this row has {fields} fields, but the table of line {header} has {columns} \
         columns, so that no value can be assigned (quotes around names or numbers may be lost); \
         export again with `nsys stats --format csv FILE`"
    )]
    TooManyFields { line: usize, fields: usize, header: usize, columns: usize },
    /// The sizes in a table have no unit.
    #[error(
        "line {line}: this is a table of gpumemsizesum without units, as Nsight Systems 2020.4 \
         writes it; export it with a newer version: `nsys stats --format csv --report \
         cuda_gpu_mem_size_sum FILE`"
    )]
    NoSizeUnit {
        /// Line of the table's header.
        line: usize,
    },
    /// A column occurs twice.
    #[error("line {line}: the column `{column}` occurs twice")]
    ColumnTwice {
        /// Line of the header.
        line: usize,
        column: String,
    },
    /// The unit of a column belongs to another quantity.
    #[error("line {line}, {column}: the header's unit is not that of a {what}; export again")]
    WrongUnit {
        line: usize,
        column: String,
        /// Quantity of the column.
        what: &'static str,
    },
    /// A number is impossible for its quantity.
    #[error("line {line}, {column}: `{cell}` cannot be a {what}; export again")]
    Impossible {
        line: usize,
        column: String,
        cell: String,
        /// Quantity of the column.
        what: &'static str,
    },
    /// A cell is not a number.
    #[error("line {line}, {column}: `{cell}` is not a number")]
    BadNumber { line: usize, column: String, cell: String },
    /// Numbers in the text are from different locales.
    #[error(
        "{dot} and {comma} are not from the same locale; export again with the environment \
         variable LC_ALL=C"
    )]
    MixedLocales {
        /// Description of a cell with a decimal point.
        dot: String,
        /// Description of a cell with a decimal comma.
        comma: String,
    },
    /// A number is ambiguous.
    #[error(
        "line {line}, {column}: `{cell}` may be a fraction or a number with grouped digits; export \
         again with the environment variable LC_ALL=C"
    )]
    Ambiguous { line: usize, column: String, cell: String },
    /// A column of numbers has no unit.
    #[error("line {line}, {column}: the header contains no known unit")]
    NoUnit { line: usize, column: String },
    /// There are too many rows.
    #[error("line {line}: more than {MAX_ROWS} rows; leave out the report `cuda_gpu_trace`")]
    TooManyRows { line: usize },
    /// A field exceeds the limit.
    #[error("line {line}: a field is longer than 64 KiB")]
    FieldTooLong { line: usize },
}

impl From<TooLong<'_>> for NsysError {
    fn from(too_long: TooLong<'_>) -> Self {
        NsysError::FieldTooLong { line: too_long.line }
    }
}
