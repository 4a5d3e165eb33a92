-- Returns the state of all inboxes: number, up to where posts have been copied, version of the hot authors, and who is to copy: who
-- asks, if nobody was. If Redis may have lost something, or if it is demanded, all inboxes end first, and the next have a greater number.
-- KEYS: state, hot authors, lease.
-- ARGV: the name of what they depend on, the time in µs, 1 if all inboxes shall end and 0 otherwise, who asks, for how many ms it would copy.
local held = redis.call('HMGET', KEYS[1], 'name', 'number')
if held[1] ~= ARGV[1] or ARGV[3] == '1' then
  local number = string.format('%.0f', math.max(ARGV[2], (held[2] or 0) + 1))
  redis.call('DEL', KEYS[1], KEYS[2])
  redis.call('HSET', KEYS[1], 'name', ARGV[1], 'number', number, 'done', 0, 'doing', 0, 'version', 0)
end
local state = redis.call('HMGET', KEYS[1], 'number', 'done', 'version')
state[4] = redis.call('GET', KEYS[3]) or ARGV[4]
if state[4] == ARGV[4] then
  redis.call('SET', KEYS[3], ARGV[4], 'PX', ARGV[5])
end
return state
