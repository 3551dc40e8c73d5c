(function()
    local M = {LuaUnit = {}}
    local function show(value)
        return type(value) == 'string' and string.format('%q', value) or tostring(value)
    end
    local function equal(one, other)
        if type(one) ~= 'table' or type(other) ~= 'table' then return one == other end
        for key, value in next, one do
            if not equal(value, rawget(other, key)) then return false end
        end
        for key in next, other do
            if rawget(one, key) == nil then return false end
        end
        return true
    end
    local function check(holds, message)
        if not holds then error('Assertion failed: ' .. message, 3) end
    end
    function M.assertEquals(actual, expected)
        check(equal(actual, expected), 'expected ' .. show(expected) .. ', got ' .. show(actual))
    end
    M.assertItemsEquals = M.assertEquals
    function M.assertNotEquals(actual, expected) check(not equal(actual, expected), 'got ' .. show(actual)) end
    function M.assertTrue(actual) check(actual == true, 'expected true, got ' .. show(actual)) end
    function M.assertFalse(actual) check(actual == false, 'expected false, got ' .. show(actual)) end
    function M.assertNil(actual) check(actual == nil, 'expected nil, got ' .. show(actual)) end
    function M.assertNotNil(actual) check(actual ~= nil, 'got nil') end
    function M.assertAlmostEquals(actual, expected, margin)
        check(math.abs(actual - expected) <= (margin or 1e-12), 'expected ' .. show(expected) .. ', got ' .. show(actual))
    end
    function M.assertError(f, ...) check(not pcall(f, ...), 'nothing was raised') end
    function M.LuaUnit.run()
        local names, failures = {}, 0
        for name, value in pairs(_G) do
            if type(name) == 'string' and name:lower():sub(1, 4) == 'test' and type(value) == 'function' then
                names[#names + 1] = name
            end
        end
        table.sort(names)
        if #names == 0 then failures = 1 end
        for _, name in ipairs(names) do
            local fine, message = pcall(_G[name])
            if not fine then
                failures = failures + 1
                io.stderr:write(name, ': ', tostring(message), '\n')
            end
        end
        return failures
    end
    return M
end)()
