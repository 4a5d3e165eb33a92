-- Records that a user has a new version, unless that is known. A user kept in the writer's form gets the new counts, if what is kept is
-- of the version before. All else that is older is removed, whatever its form, and its leases end; the version stays for a while.
-- Without a version everything is removed.
-- KEYS: user, changed lists… ARGV: form, version or 0, the version before, how long a bare version is kept in ms, counts.
local version = tonumber(ARGV[2])
for i, key in ipairs(KEYS) do
  local held = tonumber(redis.call('HGET', key, 'v') or 0)
  if version == 0 then
    redis.call('DEL', key)
  elseif i == 1 and 0 < held and tonumber(ARGV[3]) <= held and held < version and redis.call('HEXISTS', key, 'd' .. ARGV[1]) == 1 then
    redis.call('HSET', key, 'v', ARGV[2], 'c' .. ARGV[1], ARGV[5])
  elseif held < version then
    redis.call('DEL', key)
    redis.call('HSET', key, 'v', ARGV[2])
    redis.call('PEXPIRE', key, ARGV[4])
  end
end
