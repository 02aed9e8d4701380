// The program of the profiles for compilers: calls through tables of methods and through pointers to
// functions, each with one target that is called most of the time.

use std::env;
trait Op { fn apply(&self, x: u64) -> u64; }
struct Add(u64); struct Mul(u64); struct Xor(u64);
impl Op for Add { fn apply(&self, x: u64) -> u64 { x.wrapping_add(self.0) } }
impl Op for Mul { fn apply(&self, x: u64) -> u64 { x.wrapping_mul(self.0) } }
impl Op for Xor { fn apply(&self, x: u64) -> u64 { x ^ self.0 } }
#[inline(never)]
fn run(ops: &[Box<dyn Op>], mut x: u64) -> u64 { for o in ops { x = o.apply(x); } x }
fn main() {
    let n: usize = env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(2000);
    let mut ops: Vec<Box<dyn Op>> = Vec::new();
    for i in 0..1000u64 {
        ops.push(if i % 50 == 0 { Box::new(Mul(3)) } else if i % 50 == 1 { Box::new(Xor(5)) } else { Box::new(Add(i)) });
    }
    let mut x = 1u64;
    for _ in 0..n { for _ in 0..100 { x = run(&ops, x); } }
    println!("{}", x);
}
