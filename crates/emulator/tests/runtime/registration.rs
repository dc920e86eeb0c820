//! Fat binaries, kernels and variables of a program.

use std::ffi::c_void;

use crate::program::{COMPRESSED, Image, ONE, PLAIN, Program, begin, launch, memory, word};
use crate::ptx::{PROGRAM, constant};
use crate::sys::*;

#[test]
fn kernels_are_known_by_functions_of_the_host() {
    let program = Program::new(PROGRAM);
    let (fill, add_one) = (program.kernel("fill"), program.kernel("add_one"));
    let at = memory(128);
    assert_eq!(launch(fill, 32, at, 5, 0), 0);
    assert_eq!(word(at + 4 * 31), 5);
    assert_eq!(launch(add_one, 32, at, 0, 0), 0);
    assert_eq!(word(at), 5 + 32);
    let missing = program.kernel("no_such_kernel");
    assert_eq!(launch(missing, 1, at, 0, 0), INVALID_FUNCTION);
    assert_eq!(launch(missing + 1, 1, at, 0, 0), INVALID_FUNCTION);
}

#[test]
fn a_kernel_has_a_handle_that_launches_it() {
    let program = Program::new(PROGRAM);
    let host = program.kernel("add_one");
    let (mut first, mut second, mut at) = (0, 0, memory(4));
    assert_eq!(unsafe { cudaMemset(at, 0, 4) }, 0);
    assert_eq!(unsafe { __cudaGetKernel(&mut first, host) }, 0);
    assert_eq!(unsafe { __cudaGetKernel(&mut second, host) }, 0);
    assert_eq!(first, second);
    let arguments = [(&raw mut at).cast::<c_void>().cast_const()];
    let block = Dim3(3, 1, 1);
    assert_eq!(unsafe { __cudaLaunchKernel(first, ONE, block, arguments.as_ptr(), 0, 0) }, 0);
    assert_eq!(word(at), 3);
    assert_eq!(unsafe { __cudaGetKernel(&mut first, host + 1) }, INVALID_FUNCTION);
    assert_eq!(unsafe { __cudaGetKernel(&mut first, second) }, 0);
}

#[test]
fn programs_with_equal_names_have_kernels_of_their_own() {
    let (one, two) = (constant(75, 11), constant(75, 22));
    let (one, two) = (Program::new(&one), Program::new(&two));
    let (first, second) = (one.kernel("constant"), two.kernel("constant"));
    let at = memory(4);
    assert_eq!(launch(first, 1, at, 0, 0), 0);
    assert_eq!(word(at), 11);
    assert_eq!(launch(second, 1, at, 0, 0), 0);
    assert_eq!(word(at), 22);
    unsafe { __cudaUnregisterFatBinary(one.unit) };
    assert_eq!(launch(first, 1, at, 0, 0), INVALID_FUNCTION);
    assert_eq!(launch(second, 1, at, 0, 0), 0);
}

#[test]
fn the_newest_ptx_that_the_device_can_run_is_loaded() {
    let texts = [75, 80, 90].map(|sm| constant(sm, sm));
    let images = [90, 75, 80].map(|sm| {
        let text = texts.iter().find(|text| text.contains(&format!("sm_{sm}\n"))).unwrap();
        Image(sm, PLAIN, text)
    });
    let program = Program::of(&images);
    let at = memory(4);
    assert_eq!(launch(program.kernel("constant"), 1, at, 0, 0), 0);
    assert_eq!(word(at), 80);
}

#[test]
fn a_fat_binary_that_cannot_be_loaded_has_no_image_for_the_device() {
    let text = constant(90, 1);
    let at = 0;
    for image in [Image(90, PLAIN, &text), Image(80, COMPRESSED, &text)] {
        let program = Program::of(&[image]);
        let (host, mut handle) = (program.kernel("constant"), 0);
        assert_eq!(launch(host, 1, at, 0, 0), NO_KERNEL_IMAGE);
        // It has a handle all the same, so that the launch says what is wrong.
        assert_eq!(unsafe { __cudaGetKernel(&mut handle, host) }, 0);
        assert_eq!(launch(handle, 1, at, 0, 0), NO_KERNEL_IMAGE);
    }
}

#[test]
fn variables_are_known_by_their_shadows() {
    let program = Program::new(PROGRAM);
    let (fill, factors) = (program.kernel("fill"), program.variable("factors", 8));
    let counter = program.variable("counter", 4);
    let (values, mut found) = ([3u32, 10], [0u32; 2]);
    let (values, out) = (values.as_ptr() as u64, found.as_mut_ptr() as u64);
    assert_eq!(unsafe { cudaMemcpyToSymbol(factors, values, 8, 0, TO_DEVICE) }, 0);
    let at = memory(128);
    assert_eq!(launch(fill, 32, at, 1, 0), 0);
    assert_eq!(word(at + 8), 21);
    assert_eq!(unsafe { cudaMemcpyFromSymbol(out, counter, 4, 0, TO_HOST) }, 0);
    assert_eq!(unsafe { cudaMemcpyFromSymbol(out + 4, factors, 4, 4, DEFAULT) }, 0);
    assert_eq!(found, [7 + 32, 10]);
    let (mut address, mut bytes) = (0, 0);
    assert_eq!(unsafe { cudaGetSymbolAddress(&mut address, counter) }, 0);
    assert_eq!(word(address), 39);
    assert_eq!(unsafe { cudaGetSymbolSize(&mut bytes, factors) }, 0);
    assert_eq!(bytes, 8);

    assert_eq!(unsafe { cudaMemcpyToSymbol(factors, values, 8, 1, TO_DEVICE) }, INVALID_VALUE);
    assert_eq!(unsafe { cudaMemcpyToSymbol(factors, values, 8, 0, TO_HOST) }, INVALID_DIRECTION);
    let direction = unsafe { cudaMemcpyFromSymbol(out, factors, 8, 0, TO_DEVICE) };
    assert_eq!(direction, INVALID_DIRECTION);
    assert_eq!(unsafe { cudaGetSymbolAddress(&mut address, counter + 1) }, INVALID_SYMBOL);
    let missing = program.variable("no_such_variable", 4);
    assert_eq!(unsafe { cudaGetSymbolAddress(&mut address, missing) }, INVALID_SYMBOL);
}

#[test]
fn managed_variables_are_those_of_the_program() {
    let program = Program::new(PROGRAM);
    let (grow, place) = (program.kernel("grow"), program.managed("shared_number", 4));
    assert_eq!(unsafe { __cudaInitModule(program.unit) }, 1);
    let number = unsafe { *place }.cast::<u32>();
    assert_eq!(unsafe { number.read_volatile() }, 40);
    unsafe { number.write_volatile(100) };
    assert_eq!(launch(grow, 4, 0, 0, 0), 0);
    assert_eq!(unsafe { cudaDeviceSynchronize() }, 0);
    assert_eq!(unsafe { number.read_volatile() }, 108);
    // As a symbol, it is what the program has: its address.
    let mut bytes = 0;
    assert_eq!(unsafe { cudaGetSymbolSize(&mut bytes, number as usize) }, 0);
    assert_eq!(bytes, 4);
}

#[test]
fn configurations_of_calls_nest() {
    begin();
    let none = Dim3(0, 0, 0);
    let pop = || {
        let (mut grid, mut block, mut shared, mut stream) = (none, none, 0, 0);
        let answer =
            unsafe { __cudaPopCallConfiguration(&mut grid, &mut block, &mut shared, &mut stream) };
        (answer, grid, block, shared, stream)
    };
    assert_eq!(pop().0, MISSING_CONFIGURATION);
    let (outer, inner) = (Dim3(1, 2, 3), Dim3(4, 5, 6));
    assert_eq!(unsafe { __cudaPushCallConfiguration(outer, inner, 7, 2) }, 0);
    assert_eq!(unsafe { __cudaPushCallConfiguration(inner, outer, 8, 0) }, 0);
    assert_eq!(pop(), (0, inner, outer, 8, 0));
    assert_eq!(pop(), (0, outer, inner, 7, 2));
    assert_eq!(pop().0, MISSING_CONFIGURATION);
}

#[test]
fn kernels_tell_their_attributes() {
    let program = Program::new(PROGRAM);
    let host = program.kernel("fill");
    let (mut attributes, mut blocks) = ([0u64; 18], 0);
    assert_eq!(unsafe { cudaFuncGetAttributes(&mut attributes, host) }, 0);
    // Constant memory is the second word. Numbers of four bytes come after the third: threads of a
    // block, registers, the virtual architecture, the device's.
    assert_eq!((attributes[0], attributes[1]), (0, 8));
    assert_eq!(attributes[3] as u32, 1024);
    assert_eq!((attributes[4] as u32, attributes[4] >> 32), (75, 80));
    // The most dynamic shared memory, which can be raised.
    assert_eq!(attributes[5] >> 32, 48 << 10);
    assert_eq!(unsafe { cudaFuncSetAttribute(host, 8, 100 << 10) }, 0);
    assert_eq!(unsafe { cudaFuncGetAttributes(&mut attributes, host) }, 0);
    assert_eq!(attributes[5] >> 32, 100 << 10);
    let occupancy =
        unsafe { cudaOccupancyMaxActiveBlocksPerMultiprocessor(&mut blocks, host, 1024, 0) };
    assert_eq!((occupancy, blocks), (0, 2));
}
