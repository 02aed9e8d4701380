# Trees, a sort by a comparison, strings and a table, for three seconds or so.
import algorithm, tables, times

type Node = ref object
  left, right: Node

proc grow(depth: int): Node =
  result = Node()
  if depth > 0:
    result.left = grow(depth - 1)
    result.right = grow(depth - 1)

proc count(n: Node): int =
  if n == nil: 0 else: 1 + count(n.left) + count(n.right)

proc deep(n: int): int =
  if n == 0: raise newException(ValueError, "deep")
  deep(n - 1) + 1

var sum = 0
while cpuTime() < 3.0:
  sum += count(grow(12))
  var names: seq[string]
  for i in 0 ..< 2000: names.add("name" & $(i * 7919 mod 2000))
  names.sort(proc (a, b: string): int = cmp(b, a))
  var index = initTable[string, int]()
  for s in names: index[s] = s.len
  try: sum += deep(30)
  except ValueError: sum += index.len
echo sum
