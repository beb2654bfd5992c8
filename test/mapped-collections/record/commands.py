import json, sys

# What the recorder gives: the first line. After the first answer come commands (together.ts), a line each, and each is answered with a line.
given = json.loads(sys.stdin.readline())


def attempt(add):
    """Adds every memory with the first of its metadata that the library takes: ids by key, and what it said to the others."""
    ids, refused = {}, []
    for each in given['memories']:
        for metadata in each['attempts']:
            try:
                ids[each['key']] = add(each['text'], dict(metadata))
                break
            except Exception as error:
                refused.append(f'{each["key"]}: {str(error)[:200]}')
    return {'ids': ids, 'refused': refused}


def searched(search, **more):
    """The searches by a library, with what it found: keys and its numbers."""
    keys = {each['text']: each['key'] for each in given['memories']}
    for each in given['searches']:
        hits = search(each['text'], each['user_id'])
        yield {**each, **more, 'found': [keys[text] for text, *_ in hits], 'scores': [float(score) for _, score, *_ in hits]}


def answer(recorded, **commands):
    if 'searches' not in recorded:
        recorded['searches'] = list(searched(commands['search']))
    print(json.dumps(recorded), flush=True)
    for line in sys.stdin:
        name, arguments = json.loads(line)
        try:
            said = {'answer': commands[name](*arguments)}
        except Exception as error:
            said = {'error': f'{type(error).__name__}: {str(error)[:300]}'}
        print(json.dumps(said, default=str), flush=True)
