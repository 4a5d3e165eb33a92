-- Returns a list if it is there and long enough. Otherwise it takes the lease and returns 1, or
-- returns 0 if somebody else has the lease. bytes.go has the forms of a value; one that begins otherwise is missing.
-- KEYS: list.
-- ARGV: token, lease in ms, the longest list that is wanted, the time since which tombstones are
-- wanted.
local head = redis.call('GETRANGE', KEYS[1], 0, 25)
local mark
if string.sub(head, 1, 1) == 'V' then
  local long, bound, ended = struct.unpack('>Bi8i8', head, 10)
  if long == 1 and tonumber(ARGV[3]) <= bound or long == 0 and tonumber(ARGV[4]) >= ended then
    return redis.call('GET', KEYS[1])
  end
  mark = string.sub(head, 2, 9)
elseif #head > 9 and string.sub(head, 1, 1) == 'M' then
  return 0
elseif #head >= 9 then
  mark = string.sub(head, 2, 9)
else
  mark = struct.pack('>i8', 0)
end
redis.call('SET', KEYS[1], 'M' .. mark .. ARGV[1], 'PX', ARGV[2])
return 1
