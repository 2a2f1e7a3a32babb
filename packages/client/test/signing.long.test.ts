// Languages that compile first.
import { signingTests } from './signing.ts'

signingTests([
  { name: 'Go', probe: ['go', 'version'], command: (file) => ['go', 'run', file('sign.go')] },
  { name: 'Java', probe: ['java', '--version'], command: (file) => ['java', file('Sign.java')] },
  { name: 'C#', probe: ['dotnet', '--version'], command: (file) => ['dotnet', 'run', file('Sign.cs'), '--'] },
])
