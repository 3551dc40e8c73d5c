type adjudge_assert struct {
	t *testing.T
}

func adjudge_assert_new(t *testing.T) adjudge_assert {
	return adjudge_assert{t}
}

func (a adjudge_assert) holds(holds bool, got interface{}) bool {
	if !holds {
		a.t.Errorf("Assertion failed: got %#v", got)
	}
	return holds
}

func (a adjudge_assert) Equal(expected, actual interface{}, message ...interface{}) bool {
	return a.holds(reflect.DeepEqual(expected, actual), actual)
}

func (a adjudge_assert) NotEqual(expected, actual interface{}, message ...interface{}) bool {
	return a.holds(!reflect.DeepEqual(expected, actual), actual)
}

func (a adjudge_assert) True(actual bool, message ...interface{}) bool {
	return a.holds(actual, actual)
}

func (a adjudge_assert) False(actual bool, message ...interface{}) bool {
	return a.holds(!actual, actual)
}

func (a adjudge_assert) Nil(actual interface{}, message ...interface{}) bool {
	return a.holds(actual == nil, actual)
}
