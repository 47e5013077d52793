# Runs every file of checks and writes what it finds as TAP.
mkdir -p out
number=0
status=0
: > out/checks.tap
for file in checks/*_test.sh; do
  number=$((number + 1))
  name=${file#checks/}
  if sh "$file"; then
    echo "ok $number - ${name%.sh}" >> out/checks.tap
  else
    echo "not ok $number - ${name%.sh}" >> out/checks.tap
    status=1
  fi
done
echo "1..$number" >> out/checks.tap
exit $status
