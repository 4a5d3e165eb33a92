-- Returns a post if it is there and kept under its author's stamp. Otherwise it takes the lease and
-- returns 1, or returns 0 if somebody else has the lease. An author without a stamp gets one.
-- postbytes.go has the forms of a value.
-- KEYS: post, stamp.
-- ARGV: token, lease in ms, a new stamp, how long stamps are kept in ms.
local stamp = redis.call('GET', KEYS[2])
local head = redis.call('GETRANGE', KEYS[1], 0, 17)
local current = stamp and string.sub(head, 10, 17) == stamp
if current then
  if string.sub(head, 1, 1) == 'V' then
    return redis.call('GET', KEYS[1])
  elseif #head > 17 then
    return 0
  end
end
if stamp then
  redis.call('PEXPIRE', KEYS[2], ARGV[4])
else
  stamp = ARGV[3]
  redis.call('SET', KEYS[2], stamp, 'PX', ARGV[4])
end
local mark = #head >= 9 and string.sub(head, 2, 9) or struct.pack('>i8', 0)
redis.call('SET', KEYS[1], 'M' .. mark .. stamp .. ARGV[1], 'PX', ARGV[2])
return 1
