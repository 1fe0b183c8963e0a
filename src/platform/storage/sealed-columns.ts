// Columns that hold sealed values, as the features that own them describe them: by this they are sealed again with a new data
// key. test/api/sealed-columns.test.ts knows every column of bytes, so that none is forgotten.

export type SealedColumn = {
  table: string;
  column: string;
  /** The primary key. */
  key: readonly string[];
  /** What the value is sealed for. The row holds the columns of the key. */
  context(row: Record<string, string>): string;
};
