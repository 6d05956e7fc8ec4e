// A row of linear attention for numbers of type Real, at LOOP(name). Columns are lanes: no sum goes
// across them, so that a column's numbers do not depend on the others.

// Decays the state and gives what it knows of the key.
static void LOOP(decay)(const LinearRow *row, Real *restrict known) {
    const Real *k = row->k, *decay = row->decay;
    Real *state = row->state;
    for (int j = 0; j < LINEAR_COLUMNS; j++) known[j] = 0;
    for (int64_t i = 0; i < row->keys; i++) {
        Real *restrict line = state + i * LINEAR_COLUMNS, by = decay[i], key = k[i];
        for (int j = 0; j < LINEAR_COLUMNS; j++) {
            line[j] *= by;
            known[j] += line[j] * key;
        }
    }
}

// Adds key times `more` and reads the state. decay: NULL where it has decayed already.
static void LOOP(add)(const LinearRow *row, const Real *decay, const Real *restrict more,
                      Real *restrict sum) {
    const Real *k = row->k, *q = row->q;
    Real *state = row->state;
    for (int j = 0; j < LINEAR_COLUMNS; j++) sum[j] = 0;
    for (int64_t i = 0; i < row->keys; i++) {
        Real *restrict line = state + i * LINEAR_COLUMNS;
        Real by = decay ? decay[i] : 1, key = k[i], query = q[i];
        for (int j = 0; j < LINEAR_COLUMNS; j++) {
            line[j] = line[j] * by + key * more[j];
            sum[j] += line[j] * query;
        }
    }
}

static void LOOP(step)(const LinearRow *row) {
    const Real *v = row->v;
    Real *out = row->out, more[LINEAR_COLUMNS], sum[LINEAR_COLUMNS];
    if (row->beta) {
        Real known[LINEAR_COLUMNS], beta = *(const Real *)row->beta;
        LOOP(decay)(row, known);
        for (int j = 0; j < LINEAR_COLUMNS; j++)
            more[j] = j < row->columns ? beta * (v[j] - known[j]) : 0;
    } else
        for (int j = 0; j < LINEAR_COLUMNS; j++) more[j] = j < row->columns ? v[j] : 0;
    LOOP(add)(row, row->beta ? NULL : row->decay, more, sum);
    for (int j = 0; j < row->columns; j++) out[j] = sum[j];
}
