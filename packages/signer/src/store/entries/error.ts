/**
 * Thrown if an entry does not match the schema of its kind. A node does not start with such a
 * record, and does not write such an entry.
 */
export class RecordError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'RecordError'
  }
}
