-- For wrk: asks for the paths in the file that PATHS names, one a line, round and round.
local paths = {}
for line in io.lines(os.getenv("PATHS")) do
  paths[#paths + 1] = line
end
local at = 0

request = function()
  at = at % #paths + 1
  return wrk.format("GET", paths[at])
end
