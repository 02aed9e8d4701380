// Trees, a sort by a comparison, strings and a map, for three seconds or so.
use std::collections::HashMap;
use std::time::{Duration, Instant};

struct Node(Option<Box<(Node, Node)>>);

#[inline(never)]
fn grow(depth: u32) -> Node {
    Node(if depth > 0 { Some(Box::new((grow(depth - 1), grow(depth - 1)))) } else { None })
}

#[inline(never)]
fn count(n: &Node) -> u64 {
    1 + n.0.as_ref().map_or(0, |p| count(&p.0) + count(&p.1))
}

fn main() {
    let end = Instant::now() + Duration::from_secs(3);
    let mut sum = 0;
    while Instant::now() < end {
        sum += count(&grow(12));
        let mut names: Vec<String> = (0..2000).map(|i| format!("name{}", i * 7919 % 2000)).collect();
        names.sort_by(|a, b| b.cmp(a));
        let index: HashMap<&str, usize> = names.iter().map(|s| (s.as_str(), s.len())).collect();
        sum += index.len() as u64;
    }
    println!("{sum}");
}
