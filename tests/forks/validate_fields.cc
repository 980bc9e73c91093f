/** Get the end of a field, and stop if it overlaps the one before, reaches over
the end of the record, or is too short for the reference that it should hold.
@param[in]	offsets	array returned by rec_get_offsets(rec)
@param[in]	n	number of the field
@param[in]	end	end of field n - 1
@return end of field n */
MY_ATTRIBUTE((noinline))
static ulint row_sel_validate_field(const rec_offs* offsets, ulint n, ulint end)
{
	ut_a(n < rec_offs_n_fields(offsets));

	ulint		len;
	const ulint	start = rec_get_nth_field_offs(offsets, n, &len);

	if (rec_offs_nth_sql_null(offsets, n)
	    || rec_offs_nth_default(offsets, n)) {
		return end;
	}
	ut_a(start >= end);
	ut_a(start + len <= rec_offs_data_size(offsets));
	ut_a(len >= BTR_EXTERN_FIELD_REF_SIZE
	     || !rec_offs_nth_extern(offsets, n));
	return start + len;
}

/** Stop if a field of a record is not where it can be.
@param[in]	offsets	array returned by rec_get_offsets(rec) */
MY_ATTRIBUTE((noinline))
static void row_sel_validate_fields(const rec_offs* offsets)
{
	ulint	end = 0;

	for (ulint n = 0; n < rec_offs_n_fields(offsets); n++) {
		end = row_sel_validate_field(offsets, n, end);
	}
	ut_a(end <= rec_offs_data_size(offsets));
}
