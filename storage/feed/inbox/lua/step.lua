-- Renews the lease of who copies, and records what it does. Returns 0 if another holds the lease, or if these inboxes have ended.
-- KEYS: lease, state, hot authors.
-- ARGV: who, for how many ms, number of the inboxes, then nothing, or 'doing' or 'done' and the time, then of each author
--   who has become hot, or is no longer: id, how often that has happened.
if redis.call('GET', KEYS[1]) ~= ARGV[1] or redis.call('HGET', KEYS[2], 'number') ~= ARGV[3] then
  return 0
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
if ARGV[4] then
  redis.call('HSET', KEYS[2], ARGV[4], ARGV[5])
end
for i = 6, #ARGV, 2 do
  redis.call('HSET', KEYS[3], ARGV[i], ARGV[i + 1])
  redis.call('HINCRBY', KEYS[2], 'version', 1)
end
return 1
