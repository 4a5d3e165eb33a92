-- Takes or renews the lease of who fans out, and records what it does. Returns 0 if another holds the
-- lease, or if the inboxes have ended.
-- KEYS: lease, state, hot authors.
-- ARGV: who, for how many ms, number of the inboxes, then one of
--   take                  only this takes a lease that nobody holds
--   renew
--   leave                 gives the lease up
--   doing, the time, then of each author who has become hot, or is no longer: id, how often that has happened
--   done, the time
local holder = redis.call('GET', KEYS[1])
if holder ~= ARGV[1] and (holder or ARGV[4] ~= 'take') then
  return 0
end
if redis.call('HGET', KEYS[2], 'number') ~= ARGV[3] then
  return 0
end
if ARGV[4] == 'leave' then
  redis.call('DEL', KEYS[1])
  return 1
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
if ARGV[4] == 'doing' or ARGV[4] == 'done' then
  redis.call('HSET', KEYS[2], ARGV[4], ARGV[5])
end
if ARGV[4] == 'doing' and #ARGV > 5 then
  for i = 6, #ARGV, 2 do
    redis.call('HSET', KEYS[3], ARGV[i], ARGV[i + 1])
  end
  redis.call('HINCRBY', KEYS[2], 'version', 1)
end
return 1
