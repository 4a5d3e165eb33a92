-- Records that a user has a new version: the user and those lists that have changed are removed if they are
-- older. The version stays, so that nothing older is stored, and a fill that is under way loses its
-- lease. The same change may come late, twice and in any order.
-- KEYS: user, lists…
-- ARGV: the version, the version in 8 bytes, how long a bare version is kept in ms.
local version = tonumber(ARGV[1])
if tonumber(redis.call('HGET', KEYS[1], 'v') or 0) < version then
  redis.call('DEL', KEYS[1]) -- values of all forms
  redis.call('HSET', KEYS[1], 'v', ARGV[1])
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
end
for i = 2, #KEYS do
  local head = redis.call('GETRANGE', KEYS[i], 0, 8)
  if #head < 9 or struct.unpack('>i8', head, 2) < version then
    redis.call('SET', KEYS[i], 'M' .. ARGV[2], 'PX', ARGV[3])
  end
end
return 1
