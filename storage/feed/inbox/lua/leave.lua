-- Removes users from the fans of an author, unless they have been added by another build since. Fans of inboxes that have
-- ended are removed all together.
-- KEYS: fans.
-- ARGV: number of the inboxes, then of each user: its id, number of the build.
local number = redis.call('HGET', KEYS[1], 'number')
if not number then
  return 0
end
if number ~= ARGV[1] then
  if tonumber(number) < tonumber(ARGV[1]) then
    redis.call('DEL', KEYS[1])
  end
  return 0
end
for i = 2, #ARGV, 2 do
  if redis.call('HGET', KEYS[1], ARGV[i]) == ARGV[i + 1] then
    redis.call('HDEL', KEYS[1], ARGV[i])
  end
end
if redis.call('HLEN', KEYS[1]) == 1 then
  redis.call('DEL', KEYS[1])
end
return 1
