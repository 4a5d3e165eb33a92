-- Adds a user to the fans of an author, by the number of its build. Returns 0 if that is outdated.
-- KEYS: fans.
-- ARGV: number of the inboxes, user, number of the build.
local number = redis.call('HGET', KEYS[1], 'number')
if number ~= ARGV[1] then
  if number and tonumber(number) > tonumber(ARGV[1]) then
    return 0
  end
  redis.call('DEL', KEYS[1])
  redis.call('HSET', KEYS[1], 'number', ARGV[1])
end
local build = redis.call('HGET', KEYS[1], ARGV[2])
if build and tonumber(build) > tonumber(ARGV[3]) then
  return 0
end
redis.call('HSET', KEYS[1], ARGV[2], ARGV[3])
return 1
