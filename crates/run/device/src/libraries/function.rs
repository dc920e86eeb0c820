//! The library functions that can be called, and their representation as images.

use warpgauge_model::{Image, ImageFormat, Library};
use warpgauge_tensor::Dtype;

/// A function of a library, with the element type that it computes with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TypedLibraryFunction {
    /// `cusparseSpMV`: y = A·x, with A in CSR form with 32-bit indices from 0. Extents: rows,
    /// columns, non-zeros; buffers: values, col_indices, row_ptr, x, y.
    Spmv(Dtype),
    /// `cublasGemmEx`: c = a·b, all row-major. Half-precision products are summed in binary32.
    /// Extents: m, n, k, so that a is m × k and b is k × n; buffers: a, b, c.
    Gemm(Dtype),
}

impl TypedLibraryFunction {
    /// Returns the function for this element type, if the library supports the type.
    pub fn of(library: Library, dtype: Dtype) -> Option<Self> {
        match (library, dtype) {
            (Library::Cusparse, Dtype::Float32 | Dtype::Float64) => Some(Self::Spmv(dtype)),
            (
                Library::Cublas,
                Dtype::Float32 | Dtype::Float64 | Dtype::Float16 | Dtype::Bfloat16,
            ) => Some(Self::Gemm(dtype)),
            _ => None,
        }
    }

    pub fn library(self) -> Library {
        match self {
            Self::Spmv(_) => Library::Cusparse,
            Self::Gemm(_) => Library::Cublas,
        }
    }

    /// Returns the name of the function in the library.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Spmv(_) => "cusparseSpMV",
            Self::Gemm(_) => "cublasGemmEx",
        }
    }

    /// Returns the number of extents and the number of buffers.
    pub fn arity(self) -> (usize, usize) {
        match self {
            Self::Spmv(_) => (3, 5),
            Self::Gemm(_) => (3, 3),
        }
    }

    /// Returns an image that contains the function's name instead of machine code.
    pub fn image(self) -> Image {
        let (Self::Spmv(dtype) | Self::Gemm(dtype)) = self;
        let text = format!("{} {} {dtype}", self.library().name(), self.symbol());
        Image { bytes: text.into_bytes().into(), format: ImageFormat::Library }
    }

    /// Returns the function that an image names; `None` for machine code or an image of another
    /// version.
    pub fn of_image(image: &Image) -> Option<Self> {
        let dtypes = [Dtype::Float32, Dtype::Float64, Dtype::Float16, Dtype::Bfloat16];
        let known = Library::ALL.into_iter();
        let mut known =
            known.flat_map(|library| dtypes.iter().filter_map(move |&of| Self::of(library, of)));
        known.find(|function| function.image() == *image)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_says_which_function_it_stands_for() {
        let spmv = TypedLibraryFunction::of(Library::Cusparse, Dtype::Float32).unwrap();
        assert_eq!(&spmv.image().bytes[..], b"cusparse cusparseSpMV float32");
        for (library, dtype, there) in [
            (Library::Cusparse, Dtype::Float64, true),
            (Library::Cusparse, Dtype::Float16, false),
            (Library::Cublas, Dtype::Bfloat16, true),
            (Library::Cublas, Dtype::Int8, false),
        ] {
            let function = TypedLibraryFunction::of(library, dtype);
            assert_eq!(function.is_some(), there, "{library:?} {dtype}");
            if let Some(function) = function {
                assert_eq!(TypedLibraryFunction::of_image(&function.image()), Some(function));
            }
        }
        let code = Image { format: ImageFormat::Ptx, ..spmv.image() };
        assert_eq!(TypedLibraryFunction::of_image(&code), None);
    }
}
