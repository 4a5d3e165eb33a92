-- Tells that a user has a version. It may come late, twice and in any order.
--   user   held or being filled: becomes what is given, if that is newer. Otherwise only
--          the version is kept, so that nothing older is taken. A user who is made where
--          only edges were known has the same version as before: then what is held goes.
--   lists  what is older goes; the version is kept; a fill under way loses its lease.
-- KEYS: user, lists… ARGV: version, profile, counts, mark in ms, life in ms, version in 8 bytes,
-- whether the profile has changed.
local version = tonumber(ARGV[1])
local held = redis.call('HMGET', KEYS[1], 'p', 'v', 'l')
local known = tonumber(held[2] or 0)
if known == version and ARGV[7] == '1' then
  redis.call('HDEL', KEYS[1], 'p', 'c', 'l')
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
elseif held[1] then
  if known < version then
    redis.call('HSET', KEYS[1], 'p', ARGV[2], 'v', ARGV[1], 'c', ARGV[3])
  end
elseif held[3] and known < version then
  redis.call('HSET', KEYS[1], 'p', ARGV[2], 'v', ARGV[1], 'c', ARGV[3])
  redis.call('HDEL', KEYS[1], 'l')
  redis.call('PEXPIRE', KEYS[1], ARGV[5])
else
  if known < version then
    redis.call('HSET', KEYS[1], 'v', ARGV[1])
  end
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
end
for i = 2, #KEYS do
  local head = redis.call('GETRANGE', KEYS[i], 0, 8)
  local state = string.sub(head, 1, 1)
  local mark = ARGV[6]
  local newer = #head == 9 and struct.unpack('>i8', head, 2) >= version
  if newer then
    mark = string.sub(head, 2)
  end
  if not (newer and state == 'V') then
    redis.call('SET', KEYS[i], 'M' .. mark, 'PX', ARGV[4])
  end
end
return 1
