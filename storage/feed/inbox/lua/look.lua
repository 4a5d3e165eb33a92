-- Returns the state of all inboxes: number, done, doing, version of the hot authors. If the epoch of
-- Redis is another than theirs, or if it is demanded, all inboxes end, and the next have a greater number.
-- KEYS: state, hot authors.
-- ARGV: the name of the epoch, the time in µs, 1 if all inboxes shall end and 0 otherwise.
local held = redis.call('HMGET', KEYS[1], 'name', 'number')
if held[1] ~= ARGV[1] or ARGV[3] == '1' then
  local number = math.max(tonumber(ARGV[2]), tonumber(held[2] or '0') + 1)
  redis.call('DEL', KEYS[1], KEYS[2])
  redis.call('HSET', KEYS[1], 'name', ARGV[1], 'number', string.format('%.0f', number), 'done', '0', 'doing', '0', 'version', '0')
end
return redis.call('HMGET', KEYS[1], 'number', 'done', 'doing', 'version')
