/**
 * An entry that does not read as its kind: a node does not start with such a record, and does not
 * write such an entry.
 */
export class RecordError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'RecordError'
  }
}
