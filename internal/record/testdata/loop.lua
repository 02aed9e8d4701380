-- Calls, arithmetic and a C function, for so many seconds of CPU time.
local function leaf(i) return (i * 31) % 7 + math.sin(i) end
local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
local function sum(n) local s = 0 for i = 1, n do s = s + leaf(i) end return s end
local until_ = os.clock() + tonumber(arg[1])
while os.clock() < until_ do sum(20000) fib(18) end
