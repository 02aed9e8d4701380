(* Trees, a sort by a comparison, strings, a table and exceptions, for three seconds or so. *)
type node = Leaf | Node of node * node

let rec grow depth = if depth = 0 then Leaf else Node (grow (depth - 1), grow (depth - 1))
let rec count = function Leaf -> 1 | Node (l, r) -> 1 + count l + count r
let rec deep n = if n = 0 then raise Not_found else 1 + deep (n - 1)

let () =
  let sum = ref 0 in
  while Sys.time () < 3.0 do
    sum := !sum + count (grow 12);
    let names = List.init 2000 (fun i -> "name" ^ string_of_int (i * 7919 mod 2000)) in
    let sorted = List.sort (fun a b -> compare b a) names in
    let index = Hashtbl.create 16 in
    List.iter (fun s -> Hashtbl.replace index s (String.length s)) sorted;
    (try ignore (deep 30) with Not_found -> sum := !sum + Hashtbl.length index)
  done;
  print_int !sum
